// SPDX-License-Identifier: Apache-2.0
// --measured-step and --measured-config of run and tune: the measured time of a step, and what ran.
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
  std::string config;  // --measured-config; empty for what the command itself runs.
};

/// Adds the flags. The arguments must outlive the parsing.
void add_measured_flags(CLI::App& command, MeasuredArguments& arguments);

/// Returns the measurement, or nothing if there is none. `run_settings` is what the command itself runs, null where
/// that is not one point. A file that names a node of `hardware` means that cluster. Throws ConfigError for an invalid
/// time, for a file without a time, and where neither flag says what ran.
std::optional<MeasuredStep> measured_of(const MeasuredArguments& arguments, const Settings* run_settings,
                                        const std::string& hardware);

/// Predicts what was measured, from its own settings and the machine's files.
StepEvidence evidence_of(const MeasuredStep& measured);

}  // namespace commfuse::sim
