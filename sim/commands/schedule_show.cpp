// SPDX-License-Identifier: Apache-2.0
// commfuse-sim schedule show: prints what one schedule, generated or from a file, does step by step.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "model/config/choices.h"
#include "model/config/command_line.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/program/narrowed.h"
#include "model/program_text/load_schedule.h"
#include "model/program_text/step_table.h"
#include "model/program_text/text.h"
#include "model/proof/check_program.h"
#include "model/proof/effort.h"
#include "model/stderr_text.h"
#include "model/wrapped.h"
#include "sim/commands/one_schedule.h"
#include "sim/commands/schedule_commands.h"
#include "sim/commands/schedule_files.h"
#include "sim/commands/setting_flags.h"
#include "sim/point/request.h"

namespace commfuse::sim {

namespace {

constexpr std::array<std::string_view, 4> wires{"dtype", "bf16", "fp16", "fp8"};

struct ScheduleRequest {
  std::vector<std::string> files;
  SettingArguments settings;
  std::string form = "steps";
  std::string wire = "dtype";
};

/// Prints a schedule. In YAML, "---" separates it from the previous one.
void print(const Program& program, const std::string& form, bool is_first) {
  if (form == "steps") {
    require_few_ranks(program.mesh.ranks(), "to show step by step");
    require_small(program, max_effort_shown, "to show step by step");
  }
  fmt::print("{}{}", form == "yaml" && !is_first ? "---\n" : "",
             form == "yaml" ? to_text(program) : broken_lines(step_table(program) + "\n", terminal_width()));
}

/// Shows a file. An incorrect file is shown only as YAML, because its steps would mean nothing.
int show_file(const std::string& name, const std::string& form, bool is_first) {
  const ScheduleFile file = load_schedule(name);
  const std::string findings = in_words(file.path.string(), check_program(file.program));
  fmt::print(stderr, "{}", findings);
  if (findings.empty() || form == "yaml") {
    print(file.program, form, is_first);
  }
  return findings.empty() ? exit_code::done : exit_code::gate_missed;
}

int show_files(const ScheduleRequest& request) {
  if (request.wire != "dtype") {
    throw ConfigError("--wire chooses the wires of generated schedules; remove it, or the file");
  }
  const SettingArguments& settings = request.settings;
  if (!settings.flags.empty() || !settings.sets.empty() || !settings.files.empty()) {
    throw ConfigError(fmt::format("--{} chooses among generated schedules; remove it, or the file",
                                  !settings.flags.empty()  ? settings.flags.front().first->flag
                                  : !settings.sets.empty() ? "set"
                                                           : "config"));
  }
  int status = exit_code::done;
  for (const std::string& file : request.files) {
    status = std::max(status, show_file(file, request.form, &file == &request.files.front()));
  }
  return status;
}

/// Returns the program with messages in the dtype `name`; unchanged if `name` is not a dtype.
Program on_wire(Program program, const std::string& name) {
  const auto* dtype = std::ranges::find(all_dtypes, name, [](DType known) { return name_of(known); });
  return dtype == all_dtypes.end() ? program : narrowed(std::move(program), *dtype);
}

void show_generated(const ScheduleRequest& request) {
  const Settings settings = settings_of_run(request.settings);
  Library library;
  library.load(settings);
  const Point point = point_of(settings, library);
  fmt::print(stderr, "{}", for_stderr(note_on_experts(point, ScheduleUse::unpriced)));
  const bool each_variant = choices_of(settings).schedules.each_variant;
  bool is_first = true;
  for (const Candidates& candidate : each_variant ? candidates_of(settings) : plain_candidates_of(settings)) {
    for (const StrategyOptions& options : candidate.options) {
      print(on_wire(program_of(point.scope, point.model.gated_mlp, point.ranks, *candidate.strategy, options),
                    request.wire),
            request.form, std::exchange(is_first, false));
    }
  }
}

int show_schedules(const ScheduleRequest& request) {
  constexpr std::array<std::string_view, 2> forms{"steps", "yaml"};
  require_word("--output", request.form, forms, "format");
  require_word("--wire", request.wire, wires, "dtype");
  if (!request.files.empty()) {
    return show_files(request);
  }
  show_generated(request);
  return exit_code::done;
}

}  // namespace

void add_schedule_show(CLI::App& schedule, int& status) {
  add_verb(schedule, "show", "Show one schedule step by step for every rank, or as YAML", [&status](CLI::App& command) {
    const auto request = std::make_shared<ScheduleRequest>();
    offers_names(command.add_option("FILE", request->files, "Schedules in YAML instead of a generated one"),
                 Catalogue::schedules);
    add_setting_flags(command, request->settings, selects_a_schedule);
    usual(offers_words(
        command.add_option("-o,--output", request->form, "steps, yaml")->type_name("FORMAT")->capture_default_str(),
        {"steps", "yaml"}));
    offers_words(command
                     .add_option("--wire", request->wire,
                                 "Dtype of exchanges, all-gathers and all-to-alls if narrower: dtype (as --dtype), "
                                 "bf16, fp16 or fp8 (E4M3). `run --schedule` prices it by its bytes")
                     ->capture_default_str(),
                 {"dtype", "bf16", "fp16", "fp8"});
    command.footer(
        "Examples:\n"
        "  commfuse-sim schedule show --strategy commfuse --ranks 4 --scope gate_up\n"
        "  commfuse-sim schedule show --strategy sliced --slices 4 --ranks 2 -o yaml\n"
        "  commfuse-sim schedule show configs/schedules/doubling.yaml");
    command.callback([request, &status] { status = show_schedules(*request); });
  });
}

}  // namespace commfuse::sim
