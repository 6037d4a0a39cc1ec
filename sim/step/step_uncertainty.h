// SPDX-License-Identifier: Apache-2.0
// How sure the time of a whole model is: each parameter of the machine raised by its error in turn.
#pragma once

#include <cstddef>
#include <vector>

#include "model/analysis/uncertainty.h"
#include "sim/step/layer_cost.h"

namespace commfuse {

/// The machine of a step with one parameter raised, of the size that the plan needs.
struct RaisedStep {
  std::size_t parameter = 0;  ///< Its place in parameters_of.
  const Machine* machine = nullptr;
  SiteTimes* times = nullptr;  ///< On that machine.
};

/// What a point takes: a step, a prefill or a decoding step.
struct StepTime {
  Duration (*of)(const StepPoint& point, SiteTimes& times) = nullptr;
  bool backward = true;  ///< It has backward passes.
};

/// One standard error each of ln(measured / predicted), beside the errors of the machine.
struct StepResidual {
  double of_machine = 0.0;  ///< Of all steps on one machine.
  double of_layout = 0.0;   ///< Of one layout, batch and sequence against others there.
};

/// From `commfuse-sim score --kind training_step --rows`, grouped by table and machine. Dense: the means of 14 groups
/// are off by 0.069 root mean square, some 0.03 of it by the machine's own errors; within a group rows stray by 0.041,
/// pooled over the 11 groups of several. Experts: five groups, predicted too fast by 0.21 to 0.53, and 0.14 within.
StepResidual step_residual(const Transformer& model);

/// Sites keep the schedules that are best on the machine as it is. Training steps have the residual too. Requires and
/// throws as `time`.
Uncertainty step_uncertainty(const StepPoint& point, SiteTimes& times, StepTime time,
                             const std::vector<RaisedStep>& raised);

}  // namespace commfuse
