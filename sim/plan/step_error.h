// SPDX-License-Identifier: Apache-2.0
// Propagates the standard errors of a machine's parameters to the time of a step.
#pragma once

#include <vector>

#include "model/config/plan_file.h"
#include "model/record/capacity_plan.h"
#include "sim/plan/layout_search.h"
#include "sim/step/step_uncertainty.h"
#include "sim/tune/tune.h"

namespace commfuse {

/// Raises each parameter by its error in turn, with the sites' schedules unchanged. Returns the parameters that have an
/// effect, the largest first.
std::vector<CapacityDoubt> step_doubts(const LayoutSearch& search, const FoundLayout& layout,
                                       const std::vector<TunedSite>& sites, StructureCache& structures);

/// Corrects a layout's times by a step that was measured on the machine. `raised` is that machine. Returns the doubts
/// that the measurement leaves.
Uncertainty correct_layout(LayoutSearch& search, FoundLayout& layout, const RaisedSteps& raised,
                           const StepEvidence& evidence);

/// Returns the doubts of the machine's parameters among these, the largest first.
std::vector<CapacityDoubt> doubts_of(const Uncertainty& uncertainty, const Machine& machine);

/// Returns the relative standard error that is the model's own.
double model_error_of(const Uncertainty& uncertainty);

/// Returns the relative standard error of a predicted step beside those of the machine's parameters: the plan's own, or
/// that of measured steps, which ran in known frameworks. Without a framework it is at least 0.13, 1.48 times the
/// median error of steps to which nothing was fitted.
double model_error_of(const PlanFile& file, const Transformer& model, const LayoutTerms& terms);

/// Returns one relative standard error: all doubts and the model's own, taken as independent (JCGM 100:2008, 5.1.2).
double step_error(const std::vector<CapacityDoubt>& doubts, double model_error);

}  // namespace commfuse
