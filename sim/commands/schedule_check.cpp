// SPDX-License-Identifier: Apache-2.0
// commfuse-sim schedule check: the proof that schedules are right.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "model/config/command_line.h"
#include "model/config/ranges.h"
#include "model/schedule/check_program.h"
#include "model/schedule/load_schedule.h"
#include "sim/commands/schedule_commands.h"
#include "sim/commands/schedule_files.h"
#include "sim/commands/setting_flags.h"

namespace commfuse::sim {

namespace {

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
    fmt::print("{}", in_words(what, report));
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
        for (const StrategyOptions& options : strategy.variants({})) {
          const Program program = program_of(scope, true, count, strategy, options);
          tally.add(fmt::format("{} on {} ranks", program.name, count), program);
        }
      }
    }
  }
}

void check_file(const std::string& path, Tally& tally) {
  const ScheduleFile file = load_schedule(path);
  tally.add(file.path.string(), file.program);
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

}  // namespace

void add_schedule_check(CLI::App& schedule, int& status) {
  CLI::App* command = schedule.add_subcommand("check", "Prove schedules right: generated ones, or files");
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

}  // namespace commfuse::sim
