// SPDX-License-Identifier: Apache-2.0
// commfuse-sim schedule check: proves that schedules are correct.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "model/config/command_line.h"
#include "model/config/option_marks.h"
#include "model/program_text/load_schedule.h"
#include "model/proof/check_program.h"
#include "model/proof/check_written.h"
#include "model/text/files.h"
#include "sim/commands/generated.h"
#include "sim/commands/schedule_commands.h"
#include "sim/commands/schedule_files.h"

namespace commfuse::sim {

namespace {

struct CheckRequest {
  std::vector<std::string> files;
  GeneratedChoice choice{.ranks = "1..8"};
};

/// Counts proved and failed schedules. Prints failures as they occur.
struct Tally {
  int proved = 0;
  int failed = 0;

  void add(const std::string& subject, const CheckReport& report) {
    if (report.ok()) {
      ++proved;
      return;
    }
    ++failed;
    fmt::print("{}", in_words(subject, report));
  }
};

void check_generated(const GeneratedChoice& choice, Tally& tally) {
  for_each_generated(choice, [&](const Program& program) {
    tally.add(fmt::format("{} on {} ranks", program.name, program.mesh.ranks()), prove_generated(program).report);
  });
}

void check_file(const std::string& path, Tally& tally) {
  const ScheduleFile file = load_schedule(path);
  tally.add(file.path.string(), check_written(file.program));
}

int run_checks(const CheckRequest& request) {
  refuse_repeated_files(std::vector<std::filesystem::path>(request.files.begin(), request.files.end()));
  Tally tally;
  if (request.files.empty()) {
    check_generated(request.choice, tally);
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
  add_verb(schedule, "check", "Prove schedules correct: generated ones, or files", [&status](CLI::App& command) {
    const auto request = std::make_shared<CheckRequest>();
    offers_names(
        command.add_option("FILE", request->files, "Schedules in YAML, as `schedule show -o yaml` writes them"),
        Catalogue::schedules);
    add_choice_flags(command, request->choice);
    command.footer(
        "A failed proof names op, rank and region, and the exit code is 4.\n\n"
        "Examples:\n"
        "  commfuse-sim schedule check --strategy all --ranks 1..16\n"
        "  commfuse-sim schedule check mine.yaml");
    command.callback([request, &command, &status] {
      require_no_choice(command, request->files);
      status = run_checks(*request);
    });
  });
}

}  // namespace commfuse::sim
