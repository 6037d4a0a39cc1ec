// SPDX-License-Identifier: Apache-2.0
// A training step that somebody measured, and what it tells of others on the machine.
#pragma once

#include <string>

#include "model/analysis/uncertainty.h"
#include "model/config/settings.h"
#include "model/units.h"
#include "sim/step/step.h"

namespace commfuse {

/// What ran, and how long one step took.
struct MeasuredStep {
  Settings settings;
  Duration time{};
};

/// One standard error of such a time, relative: a mean of steps is another one on another day. Assumed.
inline constexpr double measured_step_error = 0.01;

/// The step beside its prediction.
struct StepEvidence {
  Evidence evidence;
  std::string hardware;  ///< It tells of no other machine.
  Duration measured{};
  Duration predicted{};
  double error = 0.0;  ///< One standard error of ln(measured / predicted).

  /// What a prediction with this uncertainty is multiplied by.
  [[nodiscard]] double correction(const Uncertainty& uncertainty) const;
};

/// `doubts`: those of the prediction.
StepEvidence step_evidence(std::string hardware, Duration measured, Duration predicted, Uncertainty doubts);

/// Throws ConfigError for another machine than that of the evidence.
void require_told_of(const std::string& hardware, const StepEvidence& evidence);

/// Every time so many times as long, with what follows from it. Requires a factor above 0.
StepPrediction longer(StepPrediction step, double factor);

/// "Measured 4300.0 ms, predicted 4050.0 ms: 6.2% longer, 0.9 standard errors." and what that means.
std::string in_words(const StepEvidence& evidence);

}  // namespace commfuse
