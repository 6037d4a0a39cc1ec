// SPDX-License-Identifier: Apache-2.0
// The schedules of a plan's sites, chosen by samples under jitter.
#pragma once

#include <utility>
#include <vector>

#include "sim/tune/tune.h"

namespace commfuse {

/// Chooses the schedule with the smallest mean for every site, or all together so that the p99 of the step is smallest,
/// and makes later predictions of the step use them (SiteTimes::prefer). Returns percentiles of the step with the
/// chosen schedules, and with the schedules of the other choice. Requires options with a jitter, a point with
/// strategies, and its sites.
std::pair<StepTail, StepTail> choose_by_samples(const StepPoint& point, SiteTimes& times, const TuneOptions& options,
                                                std::vector<TunedSite>& sites);

}  // namespace commfuse
