// SPDX-License-Identifier: Apache-2.0
// commfuse-sim schedule: what schedules there are, what one does step by step, and the proof that it is right.
#include "model/config_error.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iterator>
#include <memory>

#include "model/config/command_line.h"
#include "model/config/ranges.h"
#include "model/config/suggest.h"
#include "model/schedule/check_program.h"
#include "model/schedule/step_table.h"
#include "model/schedule/text.h"
#include "sim/commands/commands.h"
#include "sim/commands/setting_flags.h"
#include "sim/request.h"

namespace commfuse::sim {

namespace {

constexpr std::array<std::string_view, 3> schedule_settings{"model", "ranks", "scope"};

/// What selects a program: the strategy's own settings and these.
bool selects_a_schedule(const Field& field) {
  return field.key.starts_with("strategy.") || field.key == "dtype" ||
         std::find(schedule_settings.begin(), schedule_settings.end(), field.key) != schedule_settings.end();
}

Program program_of(Scope scope, bool gated_mlp, std::int32_t ranks, const Strategy& strategy,
                   const StrategyOptions& options) {
  return generate(operation_of(scope, gated_mlp), ranks, strategy, options);
}

// --- list ------------------------------------------------------------------------------------------------------------

void list() {
  for (const Strategy& strategy : strategies()) {
    fmt::print("{}\n  {}\n  leaves exposed: {}\n  source: {}\n", strategy.name, strategy.summary, strategy.exposed,
               strategy.source);
    std::string schedules;
    for (const StrategyOptions& options : strategy.variants({})) {
      const std::string parameters = strategy.describe(options);
      if (!parameters.empty()) {
        schedules += (schedules.empty() ? "" : "; ") + parameters;
      }
    }
    fmt::print("{}", schedules.empty() ? "" : fmt::format("  schedules: {}\n", schedules));
  }
}

// --- show ------------------------------------------------------------------------------------------------------------

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
  const bool all = settings.text("strategy.variants") == "all";
  for (const Candidates& candidate : all ? candidates_of(settings) : plain_candidates_of(settings)) {
    for (const StrategyOptions& options : candidate.options) {
      const Program program = program_of(point.scope, point.model.gated_mlp, point.ranks, *candidate.strategy, options);
      fmt::print("{}", request.form == "yaml" ? to_text(program) : step_table(program) + "\n");
    }
  }
}

// --- check -----------------------------------------------------------------------------------------------------------

struct CheckRequest {
  std::vector<std::string> files;
  std::string strategies = "all";
  std::string ranks = "1..8";
  std::string scopes = "all";
};

/// What was proved and what was not; failures are printed as they come.
struct Tally {
  int proved = 0;
  int failed = 0;

  void add(const std::string& what, const Program& program) {
    const CheckReport report = check_program(program);
    if (report.ok()) {
      ++proved;
      return;
    }
    ++failed;
    for (const Finding& finding : report.findings) {
      fmt::print("{}: {}\n", what, finding.sentence);
    }
    if (report.more > 0) {
      fmt::print("{}: and {} more\n", what, report.more);
    }
  }
};

/// The members of `all` that a list names, "all" being every one.
template <class T, class All, class Name>
std::vector<T> chosen(std::string_view flag, std::string_view list, const All& all, const Name& name,
                      std::string_view noun) {
  std::vector<std::string_view> names{"all"};
  for (const T& one : all) {
    names.push_back(name(one));
  }
  std::vector<T> result;
  for (const std::string_view word : split_list(list)) {
    require_word(flag, word, names, noun);
    for (const T& one : all) {
      if (word == "all" || word == name(one)) {
        result.push_back(one);
      }
    }
  }
  return result;
}

void check_generated(const CheckRequest& request, Tally& tally) {
  const auto some = chosen<Strategy>(
      "--strategy", request.strategies, strategies(), [](const Strategy& strategy) { return strategy.name; },
      "strategy");
  const auto scopes = chosen<Scope>(
      "--scope", request.scopes, all_scopes, [](Scope scope) { return name_of(scope); }, "scope");
  const std::vector<std::int32_t> ranks =
      parse_whole_numbers(request.ranks, {.flag = "--ranks", .lowest = 1, .highest = 4096});
  for (const Scope scope : scopes) {
    for (const std::int32_t count : ranks) {
      for (const Strategy& strategy : some) {
        for (const StrategyOptions& options : schedules_to_prove(strategy, kinds_of(scope), count)) {
          const Program program = program_of(scope, true, count, strategy, options);
          tally.add(fmt::format("{} on {} ranks", program.name, count), program);
        }
      }
    }
  }
}

void check_file(const std::string& path, Tally& tally) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw ConfigError(fmt::format("{}: this file cannot be read; give the path of a schedule in YAML", path));
  }
  std::string text;
  text.resize((std::size_t{1} << 20) + 1);  // one byte past what a schedule may have: parse_program says so
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  tally.add(path, parse_program(text, path));
}

int run_checks(const CheckRequest& request) {
  Tally tally;
  if (request.files.empty()) {
    check_generated(request, tally);
  }
  for (const std::string& file : request.files) {
    check_file(file, tally);
  }
  fmt::print("{} schedule{} proved: matched, free of deadlock and hazards, contents exact\n", tally.proved,
             tally.proved == 1 ? "" : "s");
  if (tally.failed > 0) {
    fmt::print("{} failed\n", tally.failed);
  }
  return tally.failed == 0 ? exit_code::done : exit_code::gate_missed;
}

void add_show(CLI::App& parent, int& status) {
  CLI::App* command = parent.add_subcommand("show", "One schedule: step by step for every rank, or as YAML");
  const auto request = std::make_shared<ShowRequest>();
  add_setting_flags(*command, request->settings, selects_a_schedule);
  command->add_option("-o,--output", request->form, "steps, yaml")->type_name("FORM")->capture_default_str();
  command->footer(
      "What is left open is at its default; with --variants all every schedule that `run` tries is shown.\n\n"
      "Examples:\n"
      "  commfuse-sim schedule show --strategy commfuse --form ring --ranks 4 --scope gate_up\n"
      "  commfuse-sim schedule show --strategy commfuse --directions halves --lanes 2 --ranks 4 --scope down\n"
      "  commfuse-sim schedule show --strategy sliced --slices 4 --ranks 2 -o yaml");
  command->callback([request, &status] {
    show(*request);
    status = exit_code::done;
  });
}

void add_check(CLI::App& parent, int& status) {
  CLI::App* command = parent.add_subcommand("check", "Prove schedules right: generated ones, or files");
  const auto request = std::make_shared<CheckRequest>();
  command->add_option("FILE", request->files, "Schedules in YAML, as `schedule show -o yaml` writes them");
  command->add_option("--strategy", request->strategies, "all, or some, between commas")->capture_default_str();
  command->add_option("--ranks", request->ranks, "4; 2,4,8; 1..8")->capture_default_str();
  command->add_option("--scope", request->scopes, "all, or some, between commas")->capture_default_str();
  command->footer(
      "A failed proof names op, rank and region, and the exit code is 4.\n\n"
      "Examples:\n"
      "  commfuse-sim schedule check --strategy all --ranks 1..16\n"
      "  commfuse-sim schedule check mine.yaml");
  command->callback([request, &status] { status = run_checks(*request); });
}

}  // namespace

void add_schedule(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("schedule", "List, show and prove schedules");
  command->require_subcommand(1);
  command->add_subcommand("list", "The strategies: what each does and what it leaves exposed")->callback([&status] {
    list();
    status = exit_code::done;
  });
  add_show(*command, status);
  add_check(*command, status);
}

}  // namespace commfuse::sim
