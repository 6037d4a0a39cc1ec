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

/// Raises one parameter at a time by its error and keeps the schedules that the search's strategies have at the sites.
/// Returns the parameters that change the time, largest effect first.
std::vector<CapacityDoubt> step_doubts(LayoutSearch& search, const FoundLayout& layout,
                                       const std::vector<TunedSite>& tuned, StructureCache& structures);

/// The effect of a measured step on a layout.
struct LayoutCorrection {
  double factor = 1.0;    ///< Factor on the layout's time, before limited_to_peak().
  Uncertainty remaining;  ///< Uncertainty after the measurement.
};

/// Corrects a layout's times by a step that was measured on the machine of `raised`.
LayoutCorrection correct_layout(LayoutSearch& search, FoundLayout& layout, const RaisedSteps& raised,
                                const StepEvidence& evidence);

/// Returns the doubts about the machine's parameters, largest effect first.
std::vector<CapacityDoubt> doubts_of(const Uncertainty& uncertainty, const Machine& machine);

/// Returns the relative standard error from all doubts that are not about the machine's parameters.
double model_error_of(const Uncertainty& uncertainty);

/// The relative standard error of a predicted step without the errors of the machine's parameters.
struct ModelError {
  double value = 0.0;
  ModelErrorSource source = ModelErrorSource::measured_steps;
  double of_run = 0.0;  ///< The error on measured steps in known frameworks, which rows of `run` use.
};

/// Returns the value in the plan file, or the error on measured steps. Without a framework, no measured step ran the
/// plan's schedules, and the error is at least 0.13: 1.48 times 8.9%, the median error of nine Megatron-Core steps on
/// H100 that were predicted without the settings of their framework. With these settings it is 4.6%
/// (docs/accuracy.md, mcore_h100_weak_scaling.csv).
ModelError model_error_of(const PlanFile& file, const Transformer& model, const LayoutTerms& terms);

/// Returns the combined relative standard error of all doubts and the model, taken as independent (JCGM 100:2008,
/// 5.1.2).
double step_error(const std::vector<CapacityDoubt>& doubts, double model_error);

}  // namespace commfuse
