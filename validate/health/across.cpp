// SPDX-License-Identifier: Apache-2.0
#include "validate/health/across.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "model/json_budget.h"
#include "model/text/counted.h"

namespace commfuse::validate {

namespace {

std::string named(const std::string& value) { return value.empty() ? "none" : value; }

const char* has_or_have(std::size_t processes) { return processes == 1 ? "has" : "have"; }

std::string tally(const std::map<std::string, int>& counts) {
  std::vector<std::string> words;
  for (const auto& [what, count] : counts) {
    words.push_back(fmt::format("{} x {}", count, what));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

/// Returns a string such as "process 3 on node-2, process 5 on node-4 and 2 more".
std::string named_processes(std::span<const NodeReport> reports, const std::vector<std::size_t>& processes) {
  constexpr std::size_t max_named = 4;
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min(max_named, processes.size()); ++i) {
    words.push_back(fmt::format("process {} on {}", processes[i], named(reports[processes[i]].host)));
  }
  return fmt::format("{}{}", fmt::join(words, ", "),
                     processes.size() > max_named ? fmt::format(" and {} more", processes.size() - max_named) : "");
}

/// The processes by value of one fact.
using Values = std::map<std::string, std::vector<std::size_t>>;

HealthCheck difference(std::span<const NodeReport> reports, const CommonFact& fact, const Values& values) {
  const auto usual = std::max_element(values.begin(), values.end(), [](const auto& a, const auto& b) {
    return a.second.size() != b.second.size() ? a.second.size() < b.second.size() : a.second.front() > b.second.front();
  });
  std::vector<std::string> words;
  for (const auto& [value, processes] : values) {
    if (value != usual->first) {
      words.push_back(
          fmt::format("{} {} {}", named_processes(reports, processes), has_or_have(processes.size()), named(value)));
    }
  }
  return {.name = "ranks",
          .subject = fact.name,
          .status = fact.unlike,
          .found = fmt::format("{}; {} of {} {} {}", fmt::join(words, "; "), usual->second.size(), reports.size(),
                               has_or_have(usual->second.size()), named(usual->first)),
          .wrong = fmt::format("nodes of this job differ in their {}", fact.name),
          .remedy = "configure the named nodes like the others, or exclude them from the job (--exclude)"};
}

nlohmann::json packed_check(const HealthCheck& check) {
  return {{"name", check.name},   {"subject", check.subject}, {"status", static_cast<int>(check.status)},
          {"found", check.found}, {"wrong", check.wrong},     {"remedy", check.remedy}};
}

/// Returns "3", or "3, 5" if ports of the node differ; empty without RoCE.
std::string gid_indices_in_words(const NodeFacts& node) {
  std::set<int> indices;
  for (const RdmaPort& port : node.ports) {
    if (const std::optional<int> index = is_active_roce(port) ? usable_gid_index(port) : std::nullopt) {
      indices.insert(*index);
    }
  }
  return fmt::format("{}", fmt::join(indices, ", "));
}

HealthStatus status_in(const nlohmann::json& number) {
  const int status = number.get<int>();
  if (status < 0 || status > static_cast<int>(HealthStatus::bad)) {
    throw std::runtime_error("a process sent an unknown status; run the same program everywhere");
  }
  return static_cast<HealthStatus>(status);
}

}  // namespace

std::vector<CommonFact> common_facts(const NodeFacts& node, const ManagementFacts& management) {
  std::map<std::string, int> gpus, ports;
  std::set<std::string> firmware;
  for (const GpuFacts& gpu : management.gpus) {
    ++gpus[gpu.name];
  }
  for (const RdmaPort& port : node.ports) {
    ++ports[port.rate];
    firmware.insert(port.firmware);
  }
  return {{"kernel", node.kernel, HealthStatus::warn},
          {"driver", node.driver.empty() ? management.driver : node.driver},
          {"GPUs", tally(gpus)},
          {"RDMA ports", tally(ports)},
          {"GID index of RoCE v2", gid_indices_in_words(node), HealthStatus::warn},
          {"NIC firmware", fmt::format("{}", fmt::join(firmware, ", ")), HealthStatus::warn},
          {"modules of GPUDirect RDMA", fmt::format("{}", fmt::join(node.modules, ", "))}};
}

std::vector<HealthCheck> differences(std::span<const NodeReport> reports) {
  std::vector<HealthCheck> checks;
  if (reports.empty()) {
    return checks;
  }
  std::set<std::string> hosts;
  for (const NodeReport& report : reports) {
    hosts.insert(report.host);
  }
  for (const CommonFact& fact : reports.front().facts) {
    Values values;
    for (std::size_t process = 0; process < reports.size(); ++process) {
      const std::vector<CommonFact>& facts = reports[process].facts;
      const auto match =
          std::find_if(facts.begin(), facts.end(), [&](const auto& other) { return other.name == fact.name; });
      values[match == facts.end() ? "" : match->value].push_back(process);
    }
    if (values.size() > 1) {
      checks.push_back(difference(reports, fact, values));
    }
  }
  if (checks.empty()) {
    checks.push_back(
        {.name = "ranks",
         .found = fmt::format("{} {} on {} have the same versions and devices", reports.size(),
                              reports.size() == 1 ? "process" : "processes", counted(hosts.size(), "host"))});
  }
  return checks;
}

std::string packed_report(const NodeReport& report) {
  nlohmann::json checks = nlohmann::json::array();
  for (const HealthCheck& check : report.checks) {
    checks.push_back(packed_check(check));
  }
  nlohmann::json facts = nlohmann::json::array();
  for (const CommonFact& fact : report.facts) {
    facts.push_back({fact.name, fact.value, static_cast<int>(fact.unlike)});
  }
  const nlohmann::json json{{"host", report.host}, {"checks", checks}, {"facts", facts}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

NodeReport unpacked_report(const std::string& text) {
  try {
    const nlohmann::json json = parse_json<nlohmann::json>(text, "report");
    NodeReport report{.host = json.at("host").get<std::string>()};
    for (const nlohmann::json& check : json.at("checks")) {
      report.checks.push_back({.name = check.at("name").get<std::string>(),
                               .subject = check.at("subject").get<std::string>(),
                               .status = status_in(check.at("status")),
                               .found = check.at("found").get<std::string>(),
                               .wrong = check.at("wrong").get<std::string>(),
                               .remedy = check.at("remedy").get<std::string>()});
    }
    for (const nlohmann::json& fact : json.at("facts")) {
      report.facts.push_back({fact.at(0).get<std::string>(), fact.at(1).get<std::string>(), status_in(fact.at(2))});
    }
    return report;
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error("a process sent a report that cannot be read; run the same program everywhere");
  }
}

}  // namespace commfuse::validate
