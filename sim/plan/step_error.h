// SPDX-License-Identifier: Apache-2.0
// Propagates the standard errors of a machine's parameters to the time of a step.
#pragma once

#include <vector>

#include "model/record/capacity_plan.h"
#include "sim/plan/layout_search.h"
#include "sim/tune/tune.h"

namespace commfuse {

/// Raises each parameter by its error in turn, with the sites' schedules unchanged. Returns the parameters that have an
/// effect, the largest first.
std::vector<CapacityDoubt> step_doubts(const LayoutSearch& search, const FoundLayout& layout,
                                       const std::vector<TunedSite>& sites, StructureCache& structures);

/// Returns one relative standard error: all doubts and the model's own, taken as independent (JCGM 100:2008, 5.1.2).
double step_error(const std::vector<CapacityDoubt>& doubts, double model_error);

}  // namespace commfuse
