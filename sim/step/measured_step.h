// SPDX-License-Identifier: Apache-2.0
// A measured training step, and the correction of other predictions on the machine by it.
#pragma once

#include <string>

#include "model/analysis/uncertainty.h"
#include "model/config/settings.h"
#include "model/units.h"
#include "sim/step/step.h"

namespace commfuse {

/// The configuration that ran, and the time of one step.
struct MeasuredStep {
  Settings settings;
  Duration time{};
};

/// One standard error of such a time, relative: the mean of a run's steps varies from day to day. Assumed.
inline constexpr double measured_step_error = 0.01;

/// The measured step beside its prediction.
struct StepEvidence {
  Evidence evidence;
  std::string hardware;  ///< The evidence counts for no other machine.
  Duration measured{};
  Duration predicted{};
  double error = 0.0;  ///< One standard error of ln(measured / predicted).

  /// Returns the factor by which a prediction with this uncertainty is multiplied.
  [[nodiscard]] double correction(const Uncertainty& uncertainty) const;
};

/// Returns the evidence. `doubts` are those of the prediction.
StepEvidence step_evidence(std::string hardware, Duration measured, Duration predicted, Uncertainty doubts);

/// Throws ConfigError for a machine other than that of the evidence.
void require_told_of(const std::string& hardware, const StepEvidence& evidence);

/// Returns the step with every time multiplied, and the rates that follow. Requires a factor above 0.
StepPrediction longer(StepPrediction step, double factor);

/// Returns "Measured 4300.0 ms, predicted 4050.0 ms: 6.2% longer, 0.9 standard errors.", with its meaning.
std::string in_words(const StepEvidence& evidence);

}  // namespace commfuse
