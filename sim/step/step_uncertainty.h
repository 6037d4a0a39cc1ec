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

/// Sites keep the schedules that are best on the machine as it is. Requires and throws as `time`.
Uncertainty step_uncertainty(const StepPoint& point, SiteTimes& times, StepTime time,
                             const std::vector<RaisedStep>& raised);

}  // namespace commfuse
