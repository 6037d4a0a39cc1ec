// SPDX-License-Identifier: Apache-2.0
// The schedules of a plan's sites, chosen by samples under jitter.
#pragma once

#include <utility>
#include <vector>

#include "sim/tune/tune.h"

namespace commfuse {

/// Chooses the schedule with the smallest mean at every site, or the schedules of all sites for which the p99 of the
/// step is smallest. Later predictions of the step use these schedules (SiteTimes::prefer). Returns percentiles of the
/// step with the chosen schedules, and with the schedules of the other objective. Requires `options` with a jitter,
/// `point` with strategies, and `sites` of its plan.
std::pair<StepTail, StepTail> choose_by_samples(const StepPoint& point, SiteTimes& times, const TuneOptions& options,
                                                std::vector<TunedSite>& sites);

}  // namespace commfuse
