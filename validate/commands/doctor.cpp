// SPDX-License-Identifier: Apache-2.0
// commfuse-validate doctor: reports what can run on this machine, what is missing, and whether the node is healthy.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/command_line.h"
#include "model/config/meant.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"
#include "model/wrapped.h"
#include "sim/commands/setting_flags.h"
#include "validate/commands/capabilities.h"
#include "validate/commands/commands.h"
#include "validate/health/across.h"
#include "validate/health/checks.h"
#include "validate/health/expected_node.h"
#include "validate/health/health_text.h"
#include "validate/mpi/launch.h"

namespace commfuse::validate {

namespace {

struct DoctorRequest {
  std::string format = "table";
  std::string root = "/";
  std::string skip;
  std::string fail_on = "never";
  std::string expect;
  bool together = false;
};

constexpr std::array<std::string_view, 2> formats{"table", "json"};
constexpr std::array<std::string_view, 3> gates{"never", "warn", "bad"};

std::vector<std::string_view> check_names() {
  std::vector<std::string_view> names(capability_names().begin(), capability_names().end());
  names.insert(names.end(), health_check_names().begin(), health_check_names().end());
  return names;
}

std::vector<std::string> skipped_of(const DoctorRequest& request) {
  std::vector<std::string> skipped;
  if (request.skip.empty()) {
    return skipped;
  }
  const std::vector<std::string_view> known = check_names();
  for (const std::string_view name : split_list(request.skip)) {
    sim::require_word("--skip", name, known, "check");
    skipped.emplace_back(name);
  }
  return skipped;
}

void require_root(const DoctorRequest& request) {
  std::error_code error;
  if (!std::filesystem::is_directory(request.root, error)) {
    throw ConfigError(fmt::format("--root: {} is not a folder; give the folder that has proc, sys and dev of the node",
                                  in_quotes(request.root)));
  }
}

ExpectedNode expected_of(const std::string& name) {
  const Machine machine = load_machine(meant_name(Catalogue::hardware, name));
  constexpr int max_gpus_per_host = 16;  // The GPUs of a rack belong to many hosts.
  const bool is_rack = machine.gpus_per_node > max_gpus_per_host;
  ExpectedNode expected{.machine = machine.name, .gpus = is_rack ? 0 : machine.gpus_per_node};
  expected.gpu = machine.accelerator.name.substr(0, machine.accelerator.name.find(' '));
  expected.has_nvlink = machine.link.name.starts_with("NVLink") && machine.link.name.find("PCIe") == std::string::npos;
  if (machine.plan != nullptr) {
    expected.pcie_speed = gigatransfers_of(machine.plan->host_link);
    expected.pcie_width = machine.plan->host_link.lanes;
  }
  if (machine.network && machine.plan != nullptr && !is_rack) {
    expected.nics = machine.nics_per_node;
    expected.nic_gigabits = 8e-9 * machine.plan->nic_rate.value;
  }
  return expected;
}

/// Returns the facts of the node. NCCL_IB_GID_INDEX in the environment overrides the value in a file, as it does for
/// jobs.
NodeFacts facts_of(const DoctorRequest& request) {
  NodeFacts node = node_facts(NodeFiles(request.root));
  const char* const variable = std::getenv("NCCL_IB_GID_INDEX");  // NOLINT(concurrency-mt-unsafe)
  const std::string_view index = variable == nullptr ? "" : variable;
  constexpr std::int64_t largest_index = 4096;
  const bool is_negative = index.starts_with('-');
  if (const std::optional<std::int64_t> number = parse_integer(index.substr(is_negative ? 1 : 0));
      number && *number <= largest_index) {
    // With -1, NCCL finds the index itself.
    node.gid_index = is_negative && *number > 0 ? std::nullopt : std::optional(static_cast<int>(*number));
  }
  return node;
}

/// The findings of this process.
struct Diagnosis {
  std::vector<Capability> capabilities;
  NodeReport report;
};

Diagnosis diagnosis(const DoctorRequest& request) {
  const std::vector<std::string> skipped = skipped_of(request);
  const NodeFacts node = facts_of(request);
  const ManagementFacts management = management_facts();
  Diagnosis result{.capabilities = capabilities(skipped), .report = {.host = node.host}};
  result.report.checks = checks_of(result.capabilities);
  for (HealthCheck& check : health_checks(node, management, skipped)) {
    result.report.checks.push_back(std::move(check));
  }
  if (!request.expect.empty()) {
    for (HealthCheck& check : expected_checks(expected_of(request.expect), node, management)) {
      result.report.checks.push_back(std::move(check));
    }
  }
  result.report.facts = common_facts(result.capabilities);
  for (CommonFact& fact : common_facts(node, management)) {
    result.report.facts.push_back(std::move(fact));
  }
  return result;
}

/// Returns the processes by host, each host with the checks of its first process.
std::vector<HostHealth> hosts_of(const std::vector<NodeReport>& reports) {
  std::vector<HostHealth> hosts;
  std::map<std::string, std::size_t> index_of_host;
  for (std::size_t process = 0; process < reports.size(); ++process) {
    const auto [entry, is_new] = index_of_host.emplace(reports[process].host, hosts.size());
    if (is_new) {
      hosts.push_back({.host = reports[process].host, .processes = {}, .checks = reports[process].checks});
    }
    hosts[entry->second].processes.push_back(static_cast<int>(process));
  }
  return hosts;
}

/// Returns the checks that capability_lines() does not print.
std::vector<HealthCheck> node_checks(const std::vector<HealthCheck>& checks) {
  std::vector<HealthCheck> kept;
  std::ranges::copy_if(checks, std::back_inserter(kept), [](const HealthCheck& check) {
    return std::ranges::find(capability_names(), check.name) == capability_names().end();
  });
  return kept;
}

void print_tables(const Diagnosis& mine, const std::vector<HostHealth>& hosts, const std::vector<HealthCheck>& across) {
  const std::size_t width = terminal_width();
  fmt::print("{}", capability_lines(mine.capabilities, width));
  for (const HostHealth& host : hosts) {
    const std::vector<HealthCheck> checks = node_checks(host.checks);
    fmt::print("\n{}", hosts.size() > 1 ? fmt::format("{}: {}\n", host.host, health_totals(checks)) : "");
    fmt::print("{}", health_table(checks, width));
  }
  if (!across.empty()) {
    fmt::print("\n{}", health_table(across, width));
  }
}

/// Returns true if a node has less than --expect requires.
bool is_less_than_expected(const std::vector<HostHealth>& hosts) {
  return std::ranges::any_of(hosts, [](const HostHealth& host) {
    return std::ranges::any_of(host.checks, [](const HealthCheck& check) {
      return check.name == expected_check && check.status == HealthStatus::bad;
    });
  });
}

/// Returns the exit code that --fail-on and --expect require.
int code_of(const DoctorRequest& request, HealthStatus worst, bool is_short) {
  const bool is_missed = is_short || (request.fail_on == "bad" && worst == HealthStatus::bad) ||
                         (request.fail_on == "warn" && worst >= HealthStatus::warn);
  return is_missed ? exit_code::gate_missed : exit_code::done;
}

int print_report(const DoctorRequest& request, const Diagnosis& mine, const std::vector<NodeReport>& reports) {
  const std::vector<HostHealth> hosts = hosts_of(reports);
  const std::vector<HealthCheck> across = reports.size() == 1 ? std::vector<HealthCheck>{} : differences(reports);
  HealthStatus worst = worst_of(across);
  for (const HostHealth& host : hosts) {
    worst = std::max(worst, worst_of(host.checks));
  }
  if (request.format == "json") {
    fmt::print("{}", health_json(hosts, across));
  } else {
    print_tables(mine, hosts, across);
  }
  return code_of(request, worst, is_less_than_expected(hosts));
}

/// Returns the processes that were started together, if they can communicate; null if this process reports alone.
Crew* crew_of(const DoctorRequest& request, Launch& launch) {
  if (request.together) {
    return &launch.crew_anyhow(default_patience);
  }
  return launch.under_mpi() && load_mpi_module().open != nullptr ? &launch.crew(default_patience) : nullptr;
}

/// Returns crew_of(). If MPI does not start, returns null and adds a failed check, because that is a finding and not a
/// reason to stop.
Crew* crew_or_failed_check(const DoctorRequest& request, Launch& launch, std::vector<HealthCheck>& checks) {
  try {
    return crew_of(request, launch);
  } catch (const std::runtime_error& error) {
    if (request.together) {
      throw;  // The user requested all processes together.
    }
    checks.push_back({.name = "ranks",
                      .status = HealthStatus::bad,
                      .found = error.what(),
                      .wrong = "the processes of this job could not connect",
                      .remedy = "check the network between the hosts, and start all processes with one launcher"});
    return nullptr;
  }
}

int diagnose(const DoctorRequest& request, Launch& launch) {
  sim::require_word("--output", request.format, formats, "format");
  sim::require_word("--fail-on", request.fail_on, gates, "word");
  require_root(request);
  Diagnosis mine = diagnosis(request);
  Crew* const crew = crew_or_failed_check(request, launch, mine.report.checks);
  if (crew == nullptr || crew->processes() == 1) {
    return print_report(request, mine, {mine.report});
  }
  NodeReport report = mine.report;
  if (report.host.empty()) {
    report.host = crew->world().host();
  }
  std::vector<NodeReport> reports;
  for (const Payload& payload : crew->gather(crew->processes(), text_payload(packed_report(report)))) {
    reports.push_back(unpacked_report(PayloadReader(payload).get_text()));
  }
  return crew->leads() ? print_report(request, mine, reports) : exit_code::done;
}

void add_flags(CLI::App& command, DoctorRequest& request) {
  usual(offers_words(command.add_option("-o,--output", request.format, "table, json")->capture_default_str(),
                     {formats.begin(), formats.end()}));
  usual(offers_words(
      command
          .add_option("--fail-on", request.fail_on, "Exit with 4 if a check reports this or worse: never, warn, bad")
          ->capture_default_str(),
      {gates.begin(), gates.end()}));
  usual(offers_names(
      command.add_option("--expect", request.expect, "Expected machine: hardware or cluster")->type_name("NAME"),
      Catalogue::hardware));
  const std::vector<std::string_view> checks = check_names();
  usual(offers_words(command
                         .add_option("--skip", request.skip,
                                     fmt::format("Checks to skip, comma-separated: {}", fmt::join(checks, ", ")))
                         ->type_name("CHECKS"),
                     checks));
  usual(command.add_option("--root", request.root, "Folder that has proc, sys and dev of the node, for example /host")
            ->capture_default_str()
            ->type_name("FOLDER"));
  usual(command.add_flag("--together", request.together,
                         "Compare the processes that srun or torchrun started (always done under mpirun)"));
}

}  // namespace

void add_doctor(CLI::App& app, Launch& launch, int& status) {
  add_verb(app, "doctor", "Show what can run here, what is missing, and whether the node is healthy",
           [&launch, &status](CLI::App& command) {
             const auto request = std::make_shared<DoctorRequest>();
             add_flags(command, *request);
             command.footer(
                 "Lists what can run, then checks the node: driver, peer access, NVLink fabric,\n"
                 "memory errors, Xid, clocks, PCIe links, NUMA, RDMA ports, RoCE and congestion\n"
                 "control, GPUDirect RDMA, ACS and IOMMU. Run it during a job to check clocks\n"
                 "under load. A finding states what is wrong and what to do; 'unknown' means not\n"
                 "checked, and why. Under mpirun, versions and devices of all processes are\n"
                 "compared. --expect checks that the node is the expected machine.\n"
                 "\n"
                 "Examples:\n"
                 "  commfuse-validate doctor\n"
                 "  commfuse-validate doctor -o json --skip cuda,nccl,timer\n"
                 "  commfuse-validate doctor --expect h100-sxm\n"
                 "  mpirun -np 2 commfuse-validate doctor\n"
                 "\n"
                 "Exit codes: 0 done; 4 a check is as bad as --fail-on, or the node falls short\n"
                 "of --expect; 1 failed; 2 the input is wrong.");
             command.callback([request, &launch, &status] { status = diagnose(*request, launch); });
           });
}

}  // namespace commfuse::validate
