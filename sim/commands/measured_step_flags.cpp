// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/measured_step_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "model/config/choices.h"
#include "model/config/field.h"
#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"
#include "sim/commands/setting_flags.h"
#include "sim/commands/spread.h"
#include "sim/point/request.h"
#include "sim/point/unused_variables.h"
#include "sim/step/predict_steps.h"

namespace commfuse::sim {

namespace {

Duration time_of(const std::string& text) {
  const std::optional<Duration> time = parse_duration(text);
  if (!time || *time <= Duration::zero()) {
    throw ConfigError(fmt::format("--measured-step: {} is not a time above 0; write one with its unit, such as 4.2s",
                                  in_quotes(text)));
  }
  return *time;
}

}  // namespace

void add_measured_flags(CLI::App& command, MeasuredArguments& arguments) {
  const std::string group = "A measured step";
  command
      .add_option("--measured-step", arguments.time,
                  "Measured time of a training step, for example 4.2s; corrects all predicted times")
      ->group(group)
      ->type_name("TIME")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  command.add_option("--measured-config", arguments.config, "Settings of the measured step, if they differ")
      ->group(group)
      ->type_name("FILE")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

std::optional<MeasuredStep> measured_of(const MeasuredArguments& arguments, const Settings* run_settings,
                                        const PredictedUnder& command) {
  if (arguments.time.empty()) {
    if (!arguments.config.empty()) {
      throw ConfigError("--measured-config requires --measured-step; add the time, such as 4.2s");
    }
    return std::nullopt;
  }
  const Duration time = time_of(arguments.time);
  if (arguments.config.empty() && run_settings == nullptr) {
    throw ConfigError("--measured-step: the measured settings are unknown; name their file with --measured-config");
  }
  Settings settings = arguments.config.empty() ? *run_settings : settings_of({.files = {arguments.config}});
  ignore_unused_variables(settings);  // The command itself notes the variables that it ignores.
  const Origin origin{Source::flag, "--measured-config"};
  if (settings.text("hardware") != command.hardware &&
      cluster_of_nodes(settings.text("hardware")) == command.hardware) {
    settings.put(*find_field("hardware"), {command.hardware, origin});
  }
  if (settings.text("jitter") != command.jitter) {
    settings.put(*find_field("jitter"), {command.jitter, origin});
  }
  return MeasuredStep{std::move(settings), time};
}

StepEvidence evidence_of(const MeasuredStep& measured) {
  if (choices_of(measured.settings).scope.work != Use::step) {
    throw ConfigError("--measured-step corrects training steps only; choose scope step");
  }
  Library library;
  library.load(measured.settings);
  return StepPoints(library).evidence_of(measured);
}

}  // namespace commfuse::sim
