// SPDX-License-Identifier: Apache-2.0
// A measured training step, and the correction that it implies for other predictions on the machine.
#pragma once

#include <string>
#include <vector>

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

/// Relative standard error of a measured step's time: the mean over the steps of a run varies from day to day. Assumed.
inline constexpr double measured_step_error = 0.01;

/// A measured step and its prediction.
struct StepEvidence {
  Evidence evidence;
  std::string hardware;  ///< The only machine to which the evidence applies.
  Duration measured{};
  Duration predicted{};
  double error = 0.0;  ///< One standard error of ln(measured / predicted).

  /// Returns the factor on a prediction with this uncertainty, before limited_to_peak().
  [[nodiscard]] double correction(const Uncertainty& uncertainty) const;
};

/// Returns the evidence. `doubts` are the uncertainties of the prediction.
StepEvidence step_evidence(std::string hardware, Duration measured, Duration predicted, Uncertainty doubts);

/// Throws ConfigError if the measured time is shorter than the model FLOPs of the step take at the dense peak of all
/// GPUs: then its unit or its configuration is wrong. `predicted` is the prediction for the measured configuration.
void require_within_peak(Duration measured, const StepPrediction& predicted);

/// Throws ConfigError unless the evidence is from this machine.
void require_matching_evidence(const std::string& hardware, const StepEvidence& evidence);

/// A factor on a predicted time, and the MFU of that prediction.
struct FactorOnStep {
  double factor = 1.0;
  double mfu = 0.0;
};

/// Returns the larger of the factor and the MFU: the time multiplied by the MFU is the limit of require_within_peak(),
/// and the corrected MFU is then exactly 1.
double limited_to_peak(const FactorOnStep& correction);

/// Returns the step with every time multiplied by limited_to_peak() of the factor, and the rates adapted. Requires a
/// factor above 0.
StepPrediction corrected(StepPrediction step, double factor);

/// Returns true if a corrected step with this MFU takes the time of limited_to_peak().
inline bool is_at_peak(double corrected_mfu) { return corrected_mfu >= 1.0; }

/// Returns "note: corrected by the measured step, ..." about the named steps, which take the time of limited_to_peak(),
/// with a line break; empty without names.
std::string peak_note(const std::vector<std::string>& names);

/// Returns "Measured 4300.0 ms, predicted 4050.0 ms: 6.2% longer.", then the share of healthy steps that take as long
/// (or are as short), advice if the errors do not explain the difference, and "Times below take the measurement into
/// account."
std::string in_words(const StepEvidence& evidence);

}  // namespace commfuse
