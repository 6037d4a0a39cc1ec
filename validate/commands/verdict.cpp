// SPDX-License-Identifier: Apache-2.0
// commfuse-validate verdict: judges whether nodes are healthy, and if not, why.
#include "validate/verdict/verdicts.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/command_line.h"
#include "model/config/meant.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/stderr_text.h"
#include "model/text/files.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"
#include "reports/atomic_file.h"
#include "sim/commands/setting_flags.h"
#include "validate/commands/commands.h"
#include "validate/commands/verdict_text.h"
#include "validate/verdict/node_logs.h"

namespace commfuse::validate {

namespace {

struct VerdictRequest {
  std::vector<std::string> files;
  std::vector<std::string> healthy;
  std::string machine;
  std::string by = "host";
  std::string false_alarms = "1%";
  std::string format = "table";
  std::string out;
  bool rows = false;
};

double false_alarms_of(const VerdictRequest& request) {
  const std::optional<double> share = parse_share(request.false_alarms);
  if (!share || *share < 1e-6 || *share > 0.25) {
    throw ConfigError(fmt::format("--false-alarms: {} is not a share of 0.0001% to 25%; write one, as in 1%",
                                  in_quotes(request.false_alarms)));
  }
  return *share;
}

/// Returns the files below a folder, sorted. Throws ConfigError if there are none, or if the folder cannot be read.
std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) {
      files.push_back(entry->path().string());
    }
  }
  if (error) {
    throw ConfigError(fmt::format("{}: the folder cannot be read ({}); give its files", folder, error.message()));
  }
  if (files.empty()) {
    throw ConfigError(fmt::format("{}: the folder has no files; give the folder of the logs", folder));
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Returns the paths, with every folder replaced by its files in sorted order. Throws ConfigError for duplicates, and
/// for folders that are empty or cannot be read.
std::vector<std::string> files_of(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    const std::vector<std::string> folder_files = files_below(path);
    files.insert(files.end(), folder_files.begin(), folder_files.end());
  }
  const std::vector<std::filesystem::path> given(files.begin(), files.end());
  refuse_repeated_files(given);
  return files;
}

std::string rendered(const VerdictRequest& request, const Verdicts& verdicts, const VerdictPage& page) {
  return request.format == "json"         ? verdict_json(verdicts, page)
         : request.format == "junit"      ? verdict_junit(verdicts, page)
         : request.format == "prometheus" ? verdict_prometheus(verdicts, page)
         : request.format == "markdown"   ? verdict_markdown(verdicts, page)
                                          : verdict_table(verdicts, page);
}

int code_of(const Verdicts& verdicts, const std::vector<std::string>& unread) {
  const auto has = [&](Health health) {
    return std::any_of(verdicts.nodes.begin(), verdicts.nodes.end(),
                       [&](const NodeVerdict& verdict) { return verdict.health == health; }) ||
           std::any_of(verdicts.jobs.begin(), verdicts.jobs.end(),
                       [&](const JobVerdict& verdict) { return verdict.judgement.health == health; });
  };
  const bool is_fleet_bad = verdicts.fleet && verdicts.fleet->median.health == Health::bad;
  return has(Health::bad) || is_fleet_bad            ? exit_code::gate_missed
         : !unread.empty() || has(Health::undecided) ? exit_code::failed_points
                                                     : exit_code::done;
}

const std::string& machine_of(const VerdictRequest& request) {
  if (request.machine.empty()) {
    throw ConfigError("--expect: name the machine to judge nodes against, as in --expect h100-sxm");
  }
  return request.machine;
}

/// Returns this_fleet for a user's file whose collectives were fitted to nodes, unless a shipped file for the same
/// accelerator was fitted to the same nodes.
FittedTo fitted_to(const std::string& name, const Machine& machine) {
  const Parameter<BytesPerSecond>& rate = machine.link.collective.rate;
  const bool is_fitted = rate.provenance == Provenance::fitted || rate.provenance == Provenance::measured;
  const bool is_path = name.find('/') != std::string::npos || name.ends_with(".yaml") || name.ends_with(".yml");
  if (!is_fitted || !is_path) {
    return FittedTo::other_nodes;
  }
  const std::vector<std::string> shipped = known_names(Catalogue::nodes);
  const bool is_copy = std::any_of(shipped.begin(), shipped.end(), [&](const std::string& other) {
    const Machine known = load_machine(other);
    return known.accelerator.name == machine.accelerator.name && known.link.collective.rate.source == rate.source;
  });
  return is_copy ? FittedTo::other_nodes : FittedTo::this_fleet;
}

/// The files to read, without folders.
struct InputFiles {
  std::vector<std::string> logs;
  std::vector<std::string> healthy;
};

/// Returns the files. Throws ConfigError if the output would replace one of them.
InputFiles input_files_of(const VerdictRequest& request) {
  InputFiles inputs{.logs = files_of(request.files), .healthy = files_of(request.healthy)};
  reports::require_no_input(request.out, inputs.logs);
  reports::require_no_input(request.out, inputs.healthy);
  return inputs;
}

/// Reads the logs to judge, and those of healthy nodes, which go into the options.
NodeLogs read_logs(const VerdictRequest& request, const InputFiles& files, Machine& machine, VerdictOptions& options) {
  const NodeBy by = request.by == "file" ? NodeBy::file : NodeBy::host;
  NodeLogs logs = read_node_logs(files.logs, by, machine);
  if (!files.healthy.empty()) {
    NodeLogs healthy = read_node_logs(files.healthy, by, machine);
    options.healthy = std::move(healthy.nodes);
    logs.unread.insert(logs.unread.end(), healthy.unread.begin(), healthy.unread.end());
    logs.passed_over.insert(logs.passed_over.end(), healthy.passed_over.begin(), healthy.passed_over.end());
  }
  return logs;
}

int run(const VerdictRequest& request) {
  sim::require_word("--output", request.format,
                    std::array<std::string_view, 5>{"table", "json", "junit", "prometheus", "markdown"}, "format");
  sim::require_word("--by", request.by, std::array<std::string_view, 2>{"host", "file"}, "choice");
  if (request.rows && request.format != "json") {
    throw ConfigError("--rows adds measurements to JSON only; add -o json");
  }
  VerdictOptions options{.false_alarms = false_alarms_of(request)};
  InputFiles files = input_files_of(request);
  JobFiles jobs = read_jobs(files.logs);
  files.logs = jobs.others;
  NodeLogs logs;
  Verdicts verdicts;
  std::string machine_name;
  // If no file of a job can be read, the reasons are printed even without a machine.
  const bool has_jobs = !jobs.jobs.empty() || (!jobs.unread.empty() && request.machine.empty());
  if (!jobs.others.empty() || !has_jobs) {
    Machine machine = load_machine(meant_name(Catalogue::hardware, machine_of(request)));
    logs = read_logs(request, files, machine, options);
    options.fitted_to = fitted_to(request.machine, machine);
    verdicts = verdicts_on(logs.nodes, machine, options);
    machine_name = machine.name;
  } else if (!request.healthy.empty()) {
    throw ConfigError("--healthy: FILES describe jobs, whose ranks are compared with each other; remove --healthy");
  }
  for (const Job& job : jobs.jobs) {
    verdicts.jobs.push_back(verdict_on(job, options.false_alarms));
  }
  logs.unread.insert(logs.unread.end(), jobs.unread.begin(), jobs.unread.end());
  logs.passed_over.insert(logs.passed_over.end(), jobs.passed_over.begin(), jobs.passed_over.end());
  const VerdictPage page{.machine = machine_name,
                         .false_alarms = options.false_alarms,
                         .unread = logs.unread,
                         .passed_over = logs.passed_over,
                         .has_rows = request.rows};
  const std::string text = rendered(request, verdicts, page);
  if (request.out.empty()) {
    fmt::print("{}", text);
  } else {
    reports::atomic_write(request.out, text);
  }
  for (const std::string& sentence : logs.unread) {
    fmt::print(stderr, "{}", for_stderr(sentence + "\n"));
  }
  return code_of(verdicts, logs.unread);
}

void add_flags(CLI::App& command, VerdictRequest& request) {
  command
      .add_option("FILES", request.files,
                  "Logs of nodes, step times of ranks: nccl-tests, rccl-tests, nvbandwidth -j, dcgmi diag -j, Kineto "
                  "traces, records of bench and links; folders of them")
      ->required()
      ->type_name("PATH");
  usual(offers_names(command
                         .add_option("--expect", request.machine,
                                     "Machine to compare nodes with: hardware, cluster or a calibrated file")
                         ->type_name("NAME"),
                     Catalogue::hardware));
  usual(command.add_option("--healthy", request.healthy, "Logs of nodes known to be healthy, to compare with")
            ->type_name("PATH"));
  usual(offers_words(command.add_option("--by", request.by, "Identity of a node: host or file")
                         ->capture_default_str()
                         ->type_name("CHOICE"),
                     {"host", "file"}));
  usual(command.add_option("--false-alarms", request.false_alarms, "Maximum share of healthy nodes called bad")
            ->capture_default_str()
            ->type_name("SHARE"));
  usual(offers_words(
      command.add_option("-o,--output", request.format, "Format: table, json, junit, prometheus or markdown")
          ->capture_default_str()
          ->type_name("FORMAT"),
      {"table", "json", "junit", "prometheus", "markdown"}));
  usual(command.add_option("--out", request.out, "File to write instead of stdout")->type_name("FILE"));
  command.add_flag("--rows", request.rows, "Every measurement with its expected value; needs -o json");
}

}  // namespace

void add_verdict(CLI::App& app, int& status) {
  add_verb(app, "verdict", "Find bad nodes from their logs", [&status](CLI::App& command) {
    const auto request = std::make_shared<VerdictRequest>();
    add_flags(command, *request);
    command.footer(
        "A node is judged by all its collectives together: at least eight sizes that are\n"
        "limited by bandwidth, from two collectives. Latency-limited sizes count too.\n"
        "Four or more nodes are also compared with each other, and the median node with\n"
        "the machine, so that a uniformly slow fleet is detected. nvbandwidth logs name\n"
        "the slow GPU or pair; errors of dcgmi diag are reported unchanged. In a job, the\n"
        "rank that delays the others is named; jobs need no --expect.\n"
        "\n"
        "Examples:\n"
        "  commfuse-validate verdict all_reduce.txt all_gather.txt --expect h100-sxm\n"
        "  commfuse-validate verdict logs/ --expect h100-sxm --healthy good/ -o json\n"
        "  commfuse-validate verdict logs/ --expect dgx-h100-x2 -o junit --out nodes.xml\n"
        "  commfuse-validate verdict steps.csv\n"
        "\n"
        "Exit codes: 0 all healthy; 4 something is bad; 3 (if nothing is bad) some files\n"
        "could not be read or hold too few measurements; 1 failed; 2 the input is wrong.");
    command.callback([request, &status] { status = run(*request); });
  });
}

}  // namespace commfuse::validate
