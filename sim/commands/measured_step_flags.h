// SPDX-License-Identifier: Apache-2.0
// --measured-step and --measured-config of run, tune and plan: the measured time of a step, and its settings.
#pragma once

#include <optional>
#include <string>

#include "sim/step/measured_step.h"

namespace CLI {
class App;
}  // namespace CLI

namespace commfuse::sim {

struct MeasuredArguments {
  std::string time;    // --measured-step; empty if nothing was measured.
  std::string config;  // --measured-config; if empty, the command's own settings were measured.
};

/// Adds the flags. `arguments` must outlive the parsing.
void add_measured_flags(CLI::App& command, MeasuredArguments& arguments);

/// The conditions under which a command predicts the steps that a measurement corrects.
struct PredictedUnder {
  std::string hardware;
  std::string jitter;
};

/// Returns the measurement, or nothing if there is none. `run_settings` are the command's own settings, or null if they
/// do not describe a single point. If `command.hardware` is a cluster, settings that name its node refer to the
/// cluster. A measured step contains the jitter of the real machine, whatever its settings say. So its settings get the
/// command's jitter; otherwise the correction would add jitter that the corrected times already include. Throws
/// ConfigError for an invalid time, for --measured-config without --measured-step, and if the settings of the measured
/// step are unknown.
std::optional<MeasuredStep> measured_of(const MeasuredArguments& arguments, const Settings* run_settings,
                                        const PredictedUnder& command);

/// Predicts the measured step, from its own settings and the machine's files.
StepEvidence evidence_of(const MeasuredStep& measured);

}  // namespace commfuse::sim
