// SPDX-License-Identifier: Apache-2.0
// The schedules of a plan's sites, chosen by samples under jitter.
#pragma once

#include <utility>
#include <vector>

#include "sim/tune/tune.h"

namespace commfuse {

/// Chooses for every site the schedule of the least mean, or all so that the p99 of the step is least; and makes the
/// step take them from now on (SiteTimes::prefer). Gives percentiles of the step with the schedules chosen, and with
/// those that the other choice would take. Requires options with a jitter, strategies among the point's, and its sites.
std::pair<StepTail, StepTail> choose_by_samples(const StepPoint& point, SiteTimes& times, const TuneOptions& options,
                                                std::vector<TunedSite>& sites);

}  // namespace commfuse
