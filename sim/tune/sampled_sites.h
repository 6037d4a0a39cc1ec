// SPDX-License-Identifier: Apache-2.0
// The schedules of a plan's sites, chosen by samples under jitter.
#pragma once

#include <utility>
#include <vector>

#include "sim/tune/tune.h"

namespace commfuse {

/// Chooses the schedule with the smallest mean for every site, or all together so that the p99 of the step is smallest,
/// and makes the step use them from then on (SiteTimes::prefer). Returns percentiles of the step with the schedules
/// chosen, and with those of the other choice. Requires options with a jitter, strategies of the point, and its sites.
std::pair<StepTail, StepTail> choose_by_samples(const StepPoint& point, SiteTimes& times, const TuneOptions& options,
                                                std::vector<TunedSite>& sites);

}  // namespace commfuse
