// SPDX-License-Identifier: Apache-2.0
// Propagates the standard errors of a machine's and a framework's parameters to the time of a step.
#pragma once

#include <vector>

#include "model/config/plan_file.h"
#include "model/record/capacity_plan.h"
#include "sim/plan/layout_search.h"
#include "sim/step/step_uncertainty.h"
#include "sim/tune/tune.h"

namespace commfuse {

/// Raises one parameter at a time by its error and keeps the schedules of the sites. Returns the parameters that change
/// the time, largest effect first.
std::vector<CapacityDoubt> step_doubts(const LayoutSearch& search, const FoundLayout& layout,
                                       const std::vector<TunedSite>& sites, StructureCache& structures);

/// Corrects a layout's times by a step that was measured on the machine of `raised`. Returns the doubts that remain
/// after the measurement.
Uncertainty correct_layout(LayoutSearch& search, FoundLayout& layout, const RaisedSteps& raised,
                           const StepEvidence& evidence);

/// Returns the doubts about the machine's parameters, largest effect first.
std::vector<CapacityDoubt> doubts_of(const Uncertainty& uncertainty, const Machine& machine);

/// Returns the relative standard error from all doubts that are not about the machine's parameters.
double model_error_of(const Uncertainty& uncertainty);

/// Returns the relative standard error of a predicted step without the errors of the machine's parameters: the value in
/// the plan file, or the error of measured steps, which ran in known frameworks. Without a framework, the error of
/// measured steps is raised to at least 0.13, which is 1.48 times the median error of steps to which nothing was
/// fitted.
double model_error_of(const PlanFile& file, const Transformer& model, const LayoutTerms& terms);

/// Returns the combined relative standard error of all doubts and the model, taken as independent (JCGM 100:2008,
/// 5.1.2).
double step_error(const std::vector<CapacityDoubt>& doubts, double model_error);

}  // namespace commfuse
