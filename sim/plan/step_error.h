// SPDX-License-Identifier: Apache-2.0
// How far the standard errors of a machine's parameters carry into the time of a step.
#pragma once

#include <vector>

#include "model/record/capacity_plan.h"
#include "sim/plan/layout_search.h"
#include "sim/tune/tune.h"

namespace commfuse {

/// The schedules of the sites, and with them each parameter higher by its error in turn; those without effect are left
/// out, the largest first.
std::vector<CapacityDoubt> step_doubts(const LayoutSearch& search, const FoundLayout& layout,
                                       const std::vector<TunedSite>& sites, StructureCache& structures);

/// One relative standard error: all doubts and the model's own, taken to be independent (JCGM 100:2008, 5.1.2).
double step_error(const std::vector<CapacityDoubt>& doubts, double model_error);

}  // namespace commfuse
