// SPDX-License-Identifier: Apache-2.0
// commfuse-sim schedule mutate: tests whether the proof catches every small mistake.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/config/command_line.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/program_text/load_schedule.h"
#include "model/proof/check_program.h"
#include "model/proof/effort.h"
#include "model/proof/mutation_report.h"
#include "model/text/counted.h"
#include "sim/commands/generated.h"
#include "sim/commands/schedule_commands.h"
#include "sim/commands/schedule_files.h"
#include "sim/commands/setting_flags.h"
#include "sim/parallel/parallel.h"

namespace commfuse::sim {

namespace {

struct MutateRequest {
  std::vector<std::string> files;
  GeneratedChoice choice{.ranks = "2..4"};
  std::string list = "none";
  std::string format = "table";
};

constexpr std::array<std::string_view, 4> lists{"none", "equivalent", "survived", "all"};
constexpr std::array<std::string_view, 2> mutation_formats{"table", "json"};

constexpr std::array all_findings{FindingKind::bounds,   FindingKind::unmatched, FindingKind::collective_order,
                                  FindingKind::deadlock, FindingKind::hazard,    FindingKind::contents};

// --- mutation -------------------------------------------------------------------------------------------------------

/// A line on the terminal that shows the progress, redrawn in place.
class Line {
 public:
  explicit Line(std::size_t total) : total_(total), shown_(::isatty(STDERR_FILENO) != 0) {}
  void finished() {
    const std::lock_guard lock(mutex_);
    ++done_;
    if (shown_) {
      fmt::print(stderr, "\r{} of {} schedules{}", done_, total_, done_ == total_ ? "\r\x1b[K" : "");
      std::fflush(stderr);
    }
  }

 private:
  std::mutex mutex_;
  std::size_t total_;
  std::size_t done_ = 0;
  bool shown_;
};

/// Throws ConfigError for a file whose ranks together have too many values to keep. The proof of the file may not have
/// rejected it: the limit of a proof is higher, and can apply to rank 0 alone.
void require_small_file(const ScheduleFile& file) {
  if (!all_ranks_within(file.program, max_effort_kept)) {
    throw ConfigError(
        fmt::format("{}: the ops of all ranks go through more than {} blocks, too many to mutate; cut the dimensions "
                    "into fewer, or use fewer ranks",
                    file.path.string(), max_effort_kept));
  }
}

/// Returns the programs to mutate. Returns nothing if the proof of a file fails, after printing the findings on stderr,
/// because only a correct program can be made wrong.
std::optional<std::vector<Program>> programs_of(const MutateRequest& request) {
  std::vector<Program> programs;
  if (request.files.empty()) {
    for_each_generated(request.choice, [&](Program program) {
      require_small(program, max_effort_kept, "to mutate");
      programs.push_back(std::move(program));
    });
    return programs;
  }
  std::vector<ScheduleFile> files;
  std::ranges::transform(request.files, std::back_inserter(files), load_schedule);
  refuse_repeated(files);
  std::string findings;
  for (ScheduleFile& file : files) {
    require_few_ranks(file.program.mesh.ranks(), "to mutate");
    const std::string file_findings = in_words(file.path.string(), check_program(file.program));
    if (file_findings.empty()) {
      require_small_file(file);
    }
    findings += file_findings;
    programs.push_back(std::move(file.program));
  }
  fmt::print(stderr, "{}", findings);
  return findings.empty() ? std::optional(std::move(programs)) : std::nullopt;
}

MutationReport mutate_all(const std::vector<Program>& programs, const std::string& list) {
  const auto is_listed = [&](Fate fate) { return list == "all" || list == name_of(fate) || fate == Fate::survived; };
  std::vector<MutationReport> reports(programs.size());
  Line line(programs.size());
  for_each_index(programs.size(), [&](std::size_t i) {
    reports[i] = mutate(programs[i], is_listed);
    line.finished();
  });
  MutationReport total;
  for (MutationReport& report : reports) {
    total += std::move(report);
  }
  return total;
}

// --- tables --------------------------------------------------------------------------------------------------------

struct Column {
  std::string name;
  std::vector<std::int64_t> numbers;  // One per kind of mutation that occurred, then the total.
};

/// Returns a column with count(kind) for every kind that occurred, and their sum.
template <class Count>
Column column_of(std::string_view name, const MutationReport& report, const Count& count) {
  Column column{.name = std::string{name}, .numbers = {}};
  std::int64_t total = 0;
  for (const auto& [kind, outcomes] : report.counts) {
    column.numbers.push_back(count(kind));
    total += column.numbers.back();
  }
  column.numbers.push_back(total);
  return column;
}

std::int64_t caught_by(const MutationReport& report, MutationKind kind, FindingKind finding) {
  const auto& outcomes = report.counts.at(kind);
  const auto outcome = outcomes.find({Fate::caught, name_of(finding)});
  return outcome == outcomes.end() ? 0 : outcome->second;
}

/// Returns the columns. Findings that caught nothing have no column.
std::vector<Column> columns_of(const MutationReport& report) {
  std::vector<Column> columns{column_of("mutations", report, [&](MutationKind kind) {
    return report.count(kind, Fate::caught) + report.count(kind, Fate::equivalent) + report.count(kind, Fate::survived);
  })};
  for (const FindingKind finding : all_findings) {
    Column column =
        column_of(name_of(finding), report, [&](MutationKind kind) { return caught_by(report, kind, finding); });
    if (column.numbers.back() > 0) {
      columns.push_back(std::move(column));
    }
  }
  for (const Fate fate : {Fate::equivalent, Fate::survived}) {
    columns.push_back(column_of(name_of(fate), report, [&](MutationKind kind) { return report.count(kind, fate); }));
  }
  return columns;
}

std::string mutant_in_words(const MutantResult& result) {
  return fmt::format("{} on {}, {}: {}{}{}{}\n", result.schedule, counted(result.ranks, "rank"), result.mutation,
                     name_of(result.fate), result.why.empty() ? "" : fmt::format(" ({})", result.why),
                     result.finding.empty() ? "" : ": ", result.finding);
}

std::string summary(const MutationReport& report) {
  const std::int64_t caught = report.count(Fate::caught);
  const std::int64_t equivalent = report.count(Fate::equivalent);
  const std::int64_t survived = report.count(Fate::survived);
  return fmt::format("{} mutations of {}: {} caught, {} equivalent, {} survived\n", caught + equivalent + survived,
                     counted(report.schedules, "schedule"), caught, equivalent, survived);
}

std::string to_table(const MutationReport& report) {
  std::string text;
  for (const MutantResult& result : report.listed) {
    text += mutant_in_words(result);
  }
  text += text.empty() ? "" : "\n";
  const std::vector<Column> columns = columns_of(report);
  std::vector<std::string_view> names;
  for (const auto& [kind, outcomes] : report.counts) {
    names.push_back(name_of(kind));
  }
  names.emplace_back("all");
  text += fmt::format("{:<10}", "mutation");
  for (const Column& column : columns) {
    text += fmt::format("  {}", column.name);
  }
  for (std::size_t row = 0; row < names.size(); ++row) {
    text += fmt::format("\n{:<10}", names[row]);
    for (const Column& column : columns) {
      text += fmt::format("  {:>{}}", column.numbers[row], column.name.size());
    }
  }
  return text + "\n" + summary(report);
}

// --- JSON ----------------------------------------------------------------------------------------------------------

using Json = nlohmann::ordered_json;

/// Returns one object for each kind of mutation.
Json kinds_of(const MutationReport& report) {
  Json mutant_rows = Json::array();
  for (const auto& [kind, outcomes] : report.counts) {
    Json row{{"schema", "commfuse.mutations/1"}, {"mutation", name_of(kind)}, {"schedules", report.schedules}};
    for (const FindingKind finding : all_findings) {
      row[fmt::format("caught_{}", name_of(finding))] = caught_by(report, kind, finding);
    }
    row["equivalent"] = report.count(kind, Fate::equivalent);
    row["survived"] = report.count(kind, Fate::survived);
    mutant_rows.push_back(std::move(row));
  }
  return mutant_rows;
}

/// Returns one object for each listed mutant.
Json mutants_of(const MutationReport& report) {
  Json mutant_rows = Json::array();
  for (const MutantResult& result : report.listed) {
    mutant_rows.push_back({{"schema", "commfuse.mutant/1"},
                           {"schedule", result.schedule},
                           {"ranks", result.ranks},
                           {"kind", name_of(result.kind)},
                           {"mutation", result.mutation},
                           {"fate", name_of(result.fate)},
                           {"why", result.why.empty() ? Json() : Json(result.why)},
                           {"finding", result.finding.empty() ? Json() : Json(result.finding)}});
  }
  return mutant_rows;
}

std::string to_json(const Json& rows) {
  std::string text = "[";
  for (const Json& row : rows) {
    text += fmt::format("{}\n{}", &row == &rows.front() ? "" : ",",
                        row.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return text + "\n]\n";
}

int run(const MutateRequest& request) {
  require_word("--list", request.list, lists, "list");
  require_word("--output", request.format, mutation_formats, "format");
  const std::optional<std::vector<Program>> programs = programs_of(request);
  if (!programs) {
    return exit_code::gate_missed;
  }
  const MutationReport report = mutate_all(*programs, request.list);
  const bool json = request.format == "json";
  fmt::print("{}", !json                    ? to_table(report)
                   : request.list == "none" ? to_json(kinds_of(report))
                                            : to_json(mutants_of(report)));
  return report.count(Fate::survived) == 0 ? exit_code::done : exit_code::gate_missed;
}

}  // namespace

void add_schedule_mutate(CLI::App& schedule, int& status) {
  add_verb(
      schedule, "mutate", "Mutate schedules and check that proofs catch the mistakes", [&status](CLI::App& command) {
        const auto request = std::make_shared<MutateRequest>();
        offers_names(
            command.add_option("FILE", request->files, "Schedules in YAML instead of generated ones: names or paths"),
            Catalogue::schedules);
        add_choice_flags(command, request->choice);
        offers_words(command.add_option("--list", request->list, "Mutants to list: none, equivalent, survived, all")
                         ->type_name("WHICH")
                         ->capture_default_str(),
                     {"none", "equivalent", "survived", "all"});
        offers_words(command.add_option("-o,--output", request->format, "table, json")
                         ->type_name("FORMAT")
                         ->capture_default_str(),
                     {"table", "json"});
        command.footer(
            "A mutant is caught if its proof fails. It is equivalent if it provably computes\n"
            "the same as the original: by the same order of the same accesses, or by the same\n"
            "values at every op. Any other mutant has survived: it is listed, and the exit\n"
            "code is 4.\n"
            "\n"
            "Examples:\n"
            "  commfuse-sim schedule mutate --strategy all --ranks 2..4\n"
            "  commfuse-sim schedule mutate configs/schedules/doubling.yaml --list equivalent");
        command.callback([request, &command, &status] {
          require_no_choice(command, request->files);
          status = run(*request);
        });
      });
}

}  // namespace commfuse::sim
