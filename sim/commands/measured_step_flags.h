// SPDX-License-Identifier: Apache-2.0
// --measured-step and --measured-config of run and tune: how long a step took, and of what.
#pragma once

#include <optional>
#include <string>

#include "sim/step/measured_step.h"

namespace CLI {
class App;
}  // namespace CLI

namespace commfuse::sim {

struct MeasuredArguments {
  std::string time;    // --measured-step; empty: nothing was measured
  std::string config;  // --measured-config; empty: what the command runs itself
};

/// The arguments must outlive the parsing.
void add_measured_flags(CLI::App& command, MeasuredArguments& arguments);

/// What was measured; nothing where nobody did. `own`: what the command itself runs, null where that is not one point.
/// A file that names a node of `hardware` is taken to mean that cluster. Throws ConfigError for a time that is none, a
/// file without a time, and where neither says what ran.
std::optional<MeasuredStep> measured_of(const MeasuredArguments& arguments, const Settings* own,
                                        const std::string& hardware);

/// The prediction of what was measured, from its own settings and the machine's files.
StepEvidence evidence_of(const MeasuredStep& measured);

}  // namespace commfuse::sim
