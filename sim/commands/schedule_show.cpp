// SPDX-License-Identifier: Apache-2.0
// commfuse-sim schedule show: what one schedule does step by step.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <memory>

#include "model/config/command_line.h"
#include "model/schedule/step_table.h"
#include "model/schedule/text.h"
#include "sim/commands/schedule_commands.h"
#include "sim/commands/setting_flags.h"
#include "sim/request.h"

namespace commfuse::sim {

namespace {

struct ShowRequest {
  SettingArguments settings;
  std::string form = "steps";
};

void show(const ShowRequest& request) {
  constexpr std::array<std::string_view, 2> forms{"steps", "yaml"};
  require_word("--output", request.form, forms, "form");
  Resolver resolver;
  read_files(request.settings, resolver);
  read_above_files(request.settings, resolver);
  const Settings settings = resolver.finish();
  Library library;
  library.load_model(settings.text("model"));
  library.load_machine(settings.text("hardware"));
  const Point point = point_of(settings, library);
  for (const Candidates& candidate : candidates_of(settings)) {
    for (const StrategyOptions& options : candidate.options) {
      const Program program = program_of(point.scope, point.model.gated_mlp, point.ranks, *candidate.strategy, options);
      fmt::print("{}", request.form == "yaml" ? to_text(program) : step_table(program) + "\n");
    }
  }
}

}  // namespace

void add_schedule_show(CLI::App& schedule, int& status) {
  CLI::App* command = schedule.add_subcommand("show", "One schedule: step by step for every rank, or as YAML");
  const auto request = std::make_shared<ShowRequest>();
  add_setting_flags(*command, request->settings, selects_a_schedule);
  command->add_option("-o,--output", request->form, "steps, yaml")->type_name("FORM")->capture_default_str();
  command->footer(
      "Examples:\n"
      "  commfuse-sim schedule show --strategy commfuse --form ring --ranks 4 --scope gate_up\n"
      "  commfuse-sim schedule show --strategy sliced --slices 4 --ranks 2 -o yaml");
  command->callback([request, &status] {
    show(*request);
    status = exit_code::done;
  });
}

}  // namespace commfuse::sim
