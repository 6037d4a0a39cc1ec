// SPDX-License-Identifier: Apache-2.0
#include "validate/verdict/node_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "model/analysis/percentiles.h"
#include "model/config_error.h"
#include "model/expect/expectation.h"
#include "model/formats/dcgm_diag.h"
#include "model/formats/nccl_tests.h"
#include "model/formats/nvbandwidth.h"
#include "model/record/run_record.h"
#include "model/text/counted.h"
#include "model/text/files.h"
#include "model/text/plain_text.h"

namespace commfuse::validate {

namespace {

constexpr std::size_t max_log_bytes = std::size_t{64} << 20U;
/// Limit for a node: five collectives of 2, 4 and 8 ranks over all sizes, run a hundred times, have fewer.
constexpr std::size_t max_rows = 50'000;

struct ReadRun {
  std::string file;
  NcclTestsRun run;
};

/// Returns true if the text begins like a run record (run_record.h).
bool is_run_record(std::string_view text) {
  const std::string_view head = text.substr(0, 64);
  return head.starts_with('{') && head.find(run_record_schema) != std::string_view::npos;
}

/// Returns a collective of a record in the form of nccl-tests.
NcclTestsRun run_of(const MicroBenchmark& benchmark, const RunRecord& record) {
  NcclTestsRun run{.op = benchmark.op, .ranks = static_cast<int>(benchmark.ranks)};
  for (std::size_t rank = 0; rank < record.environment.hosts.size() && rank < static_cast<std::size_t>(benchmark.ranks);
       ++rank) {
    const std::string& host = record.environment.hosts[rank];
    if (std::find(run.hosts.begin(), run.hosts.end(), host) == run.hosts.end()) {
      run.hosts.push_back(host);
    }
  }
  run.nodes = std::max(1, static_cast<int>(run.hosts.size()));
  std::vector<Duration> samples = benchmark.samples;
  std::sort(samples.begin(), samples.end());
  const Duration time = percentile(samples, 500).value;
  if (time > Duration{}) {
    run.rows.push_back({.bytes = benchmark.bytes, .time_us = to_microseconds(time), .place = benchmark.op});
  } else {
    run.mistakes.push_back({.place = benchmark.op, .reason = "the time is not above 0"});
  }
  return run;
}

/// Contents of one file: runs of collectives, or the results of another tool.
struct ReadFile {
  std::string file;
  std::vector<NcclTestsRun> runs;
  std::optional<ToolResults> results;
};

/// Reads the collectives that `commfuse-validate bench` measured over all ranks, out of place and with nothing else
/// running, and the copies that `links --copies` measured.
ReadFile read_record(const std::string& file) {
  constexpr std::int64_t max_ranks = 1 << 20;
  const RunRecord record = load_run_record(file);
  if (record.links == "emulated") {
    throw ConfigError(fmt::format("{}: its links were emulated at predicted times; give measurements", file));
  }
  std::vector<NcclTestsRun> runs;
  for (const MicroBenchmark& benchmark : record.micro_benchmarks) {
    const bool is_collective =
        link_op_named(benchmark.op) && benchmark.rank < 0 && benchmark.beside.empty() && !benchmark.in_place;
    if (is_collective && benchmark.ranks >= 2 && benchmark.ranks <= max_ranks && benchmark.bytes > 0 &&
        !benchmark.samples.empty()) {
      runs.push_back(run_of(benchmark, record));
    }
  }
  ToolResults results = results_of(record);
  if (!results.copies.empty() || !results.passed_over.empty()) {
    return {.file = file, .runs = std::move(runs), .results = std::move(results)};
  }
  if (runs.empty()) {
    throw ConfigError(fmt::format(
        "{}: has neither collectives nor copies; give a record of commfuse-validate bench or links --copies", file));
  }
  return {.file = file, .runs = std::move(runs), .results = {}};
}

/// Returns true if one of the keys is near the beginning of a JSON text.
bool has_key(std::string_view text, std::initializer_list<std::string_view> keys) {
  constexpr std::size_t head_bytes = std::size_t{1} << 16U;
  const std::string_view head = text.substr(0, head_bytes);
  return head.find('{') != std::string_view::npos &&
         std::any_of(keys.begin(), keys.end(), [&](std::string_view key) { return head.find(key) != head.npos; });
}

ReadFile with_notes(std::string file, ToolResults results, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) {
    const std::string prefix = file + ": ";
    results.passed_over.push_back(note.starts_with(prefix) ? note.substr(prefix.size()) : note);
  }
  return {.file = std::move(file), .runs = {}, .results = std::move(results)};
}

ReadFile read_any(const std::string& file) {
  std::string text = read_file(file, max_log_bytes);
  if (text.size() > max_log_bytes) {
    throw ConfigError(fmt::format("{}: is larger than 64 MiB; remove everything but output of nccl-tests", file));
  }
  if (is_run_record(text)) {
    return read_record(file);
  }
  if (has_key(text, {"\"DCGM Diagnostic\"", "\"DCGM GPU Diagnostic\""})) {  // One of its tests is "nvbandwidth".
    const DcgmDiagnostic diagnostic = read_dcgm_diag(text, file);
    return with_notes(file, results_of(diagnostic), diagnostic.notes);
  }
  if (has_key(text, {"\"nvbandwidth\""})) {
    const BandwidthRun run = read_nvbandwidth(text, file);
    return with_notes(file, results_of(run), run.notes);
  }
  return {.file = file,
          .runs = read_nccl_tests(text, file, nccl_program_in(std::filesystem::path(file).filename().string())),
          .results = {}};
}

/// Returns the host that is named by a folder on the path, or by the file's name up to its first dot; nothing if
/// neither is in `hosts`.
std::optional<std::string> host_in_path(const std::string& file, const std::set<std::string>& hosts) {
  const std::filesystem::path path(file);
  const std::string name = path.filename().string();
  if (const auto known = hosts.find(name.substr(0, name.find('.'))); known != hosts.end()) {
    return *known;
  }
  for (std::filesystem::path folder = path.parent_path(); folder.has_filename(); folder = folder.parent_path()) {
    if (const auto known = hosts.find(folder.filename().string()); known != hosts.end()) {
      return *known;
    }
  }
  return std::nullopt;
}

/// Returns the number of nodes of a run. A rack whose GPUs share one switch counts as one node, although it has many
/// hosts.
std::int64_t nodes_of(const NcclTestsRun& run, const Machine& machine) {
  constexpr int max_gpus_per_host = 16;
  return machine.gpus_per_node > max_gpus_per_host ? (run.ranks + machine.gpus_per_node - 1) / machine.gpus_per_node
                                                   : run.nodes;
}

class ByNode {
 public:
  ByNode(NodeBy by, const Machine& machine) : by_(by), machine_(machine) {}

  void add(const ReadRun& read) {
    const NcclTestsRun& run = read.run;
    NodeLog& node = node_of(read.file, read.run.hosts);
    add_hosts(node.hosts);
    for (const NcclTestsMistake& mistake : run.mistakes) {
      if (mistake.is_wrong_result) {
        node.wrong_results.push_back(with_escapes(fmt::format("{}: {}: {}", read.file, mistake.place, mistake.reason)));
      } else {
        const std::string sentence =
            fmt::format("{}: rows that cannot be read, the first: {}: {}", read.file, mistake.place, mistake.reason);
        pass_row_over(unread_rows_.try_emplace(read.file, sentence).first->second);
      }
    }
    if (!run.nccl_version.empty() &&
        std::find(node.nccl_versions.begin(), node.nccl_versions.end(), run.nccl_version) == node.nccl_versions.end()) {
      node.nccl_versions.push_back(run.nccl_version);
    }
    add_rows(read, node);
  }

  /// Adds hosts to which files without a host name may belong.
  void add_hosts(const std::vector<std::string>& hosts) { hosts_.insert(hosts.begin(), hosts.end()); }

  /// Adds the results of another tool. Requires that every run was added, and that add_hosts() was called for the hosts
  /// of all results.
  void add(const std::string& file, const ToolResults& results) {
    std::vector<std::string> hosts = results.hosts;
    if (const std::optional<std::string> host = host_in_path(file, hosts_); hosts.empty() && host) {
      hosts = {*host};
    }
    NodeLog& node = node_of(file, hosts);
    node.copies.insert(node.copies.end(), results.copies.begin(), results.copies.end());
    node.findings.insert(node.findings.end(), results.findings.begin(), results.findings.end());
    node.has_passed_tests = node.has_passed_tests || (results.has_passed_tests && results.copies.empty());
    for (const std::string& sentence : results.passed_over) {
      pass_over(fmt::format("{}: {}", file, sentence));
    }
  }

  NodeLogs logs() && {
    NodeLogs logs;
    for (auto& [name, node] : nodes_) {
      logs.nodes.push_back(std::move(node));
    }
    for (const auto& [sentence, count] : passed_over_) {
      const bool is_of_rows = rows_passed_over_.count(sentence) > 0;
      logs.passed_over.push_back(is_of_rows ? fmt::format("{} ({})", sentence, counted(count, "row")) : sentence);
    }
    return logs;
  }

 private:
  NodeLog& node_of(const std::string& file, const std::vector<std::string>& named) {
    const bool has_hosts = by_ == NodeBy::host && !named.empty() && !named.front().empty();
    std::vector<std::string> hosts = has_hosts ? named : std::vector{file};
    std::vector<std::string> sorted = hosts;
    std::sort(sorted.begin(), sorted.end());
    const std::string name = with_escapes(fmt::format("{}", fmt::join(sorted, "+")));
    NodeLog& node = nodes_[name];
    if (node.name.empty()) {
      node.name = name;
      for (const std::string& host : hosts) {
        node.hosts.push_back(with_escapes(host));
      }
    }
    return node;
  }

  void add_rows(const ReadRun& read, NodeLog& node) {
    const NcclTestsRun& run = read.run;
    const std::optional<LinkOp> op = link_op_named(run.op);
    for (const NcclTestsRow& row : run.rows) {
      const Message message{.op = op.value_or(LinkOp::all_gather),
                            .gpus = run.ranks,
                            .nodes = nodes_of(run, machine_),
                            .bytes = {row.bytes}};
      if (!op) {
        pass_row_over(fmt::format("{}: the model has no {}", read.file, run.op));
      } else if (run.groups > 1) {
        pass_row_over(fmt::format("{}: {} groups ran simultaneously, so times do not belong to a single group",
                                  read.file, run.groups));
      } else if (op == LinkOp::send_recv && run.ranks != 2) {
        pass_row_over(
            fmt::format("{}: send_recv of {} GPUs, which share wires; only pairs are judged", read.file, run.ranks));
      } else if (!fits(machine_, message)) {
        pass_row_over(fmt::format("{}: {} GPUs on {}, which {} does not have", read.file, run.ranks,
                                  counted(message.nodes, "node"), machine_.name));
      } else if (node.rows.size() >= max_rows) {
        pass_row_over(fmt::format("{}: rows beyond {} of {}", read.file, max_rows, node.name));
      } else {
        node.rows.push_back({message, row.time_us});
      }
    }
  }

  void pass_over(const std::string& sentence) { ++passed_over_[with_escapes(sentence)]; }
  void pass_row_over(const std::string& sentence) {
    pass_over(sentence);
    rows_passed_over_.insert(with_escapes(sentence));
  }

  NodeBy by_;
  const Machine& machine_;
  std::map<std::string, NodeLog> nodes_;
  std::set<std::string> hosts_;  // hosts that files name
  std::map<std::string, std::size_t> passed_over_;
  std::set<std::string> rows_passed_over_;          // sentences of passed_over_ whose counts are of rows
  std::map<std::string, std::string> unread_rows_;  // by file, the sentence about all its rows that cannot be read
};

}  // namespace

NodeLogs read_node_logs(const std::vector<std::string>& files, NodeBy by, Machine& machine) {
  std::vector<ReadFile> read_files;
  std::vector<std::string> unread;
  for (const std::string& file : files) {
    try {
      read_files.push_back(read_any(file));
    } catch (const ConfigError& error) {
      unread.emplace_back(error.what());
    }
  }
  for (const ReadFile& contents : read_files) {
    for (const NcclTestsRun& run : contents.runs) {
      machine.nodes =
          machine.network ? std::max(machine.nodes, static_cast<int>(nodes_of(run, machine))) : machine.nodes;
    }
  }
  ByNode by_node(by, machine);
  for (ReadFile& contents : read_files) {
    for (NcclTestsRun& run : contents.runs) {
      by_node.add({contents.file, std::move(run)});
    }
  }
  for (const ReadFile& contents : read_files) {
    if (contents.results) {
      by_node.add_hosts(contents.results->hosts);
    }
  }
  for (const ReadFile& contents : read_files) {
    if (contents.results) {
      by_node.add(contents.file, *contents.results);
    }
  }
  NodeLogs logs = std::move(by_node).logs();
  logs.unread = std::move(unread);
  return logs;
}

}  // namespace commfuse::validate
