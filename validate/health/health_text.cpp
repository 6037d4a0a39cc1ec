// SPDX-License-Identifier: Apache-2.0
#include "validate/health/health_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "model/text/plain_text.h"
#include "model/wrapped.h"

namespace commfuse::validate {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t text_column = 20;

/// Escapes text, because /sys of an unknown machine may hold anything.
std::string plain(const std::string& text) {
  std::string escaped = with_escapes(text);
  if (!is_utf8(escaped)) {
    std::replace_if(
        escaped.begin(), escaped.end(), [](char letter) { return (static_cast<unsigned char>(letter) & 0x80U) != 0; },
        '?');
  }
  return escaped;
}

Json json_of(const HealthCheck& check) {
  return {{"name", check.name},          {"subject", plain(check.subject)}, {"status", name_of(check.status)},
          {"found", plain(check.found)}, {"wrong", plain(check.wrong)},     {"remedy", plain(check.remedy)}};
}

Json json_of(std::span<const HealthCheck> checks) {
  Json list = Json::array();
  for (const HealthCheck& check : checks) {
    list.push_back(json_of(check));
  }
  return list;
}

}  // namespace

std::string health_table(std::span<const HealthCheck> checks, std::size_t width) {
  std::string table = fmt::format("{:<10} {:<8} {}\n", "check", "status", "found");
  const std::string indent(text_column, ' ');
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const HealthCheck& check = checks[i];
    const std::string observation =
        check.subject.empty() ? check.found : fmt::format("{}: {}", check.subject, check.found);
    table +=
        wrapped(plain(observation), fmt::format("{:<10} {:<8} ", check.name, name_of(check.status)), indent, width);
    const bool is_shared_with_next = i + 1 < checks.size() && checks[i + 1].status == check.status &&
                                     checks[i + 1].wrong == check.wrong && checks[i + 1].remedy == check.remedy;
    if (check.status != HealthStatus::ok && !is_shared_with_next) {  // stated once, below the last check that shares it
      table += wrapped(plain(check.wrong), indent + "wrong: ", indent + "  ", width);
      table += wrapped(plain(check.remedy), indent + "do: ", indent + "  ", width);
    }
  }
  return table;
}

std::string health_totals(std::span<const HealthCheck> checks) {
  std::vector<std::string> words;
  for (const HealthStatus status : {HealthStatus::ok, HealthStatus::unknown, HealthStatus::warn, HealthStatus::bad}) {
    const auto count =
        std::count_if(checks.begin(), checks.end(), [&](const auto& check) { return check.status == status; });
    if (count > 0) {
      words.push_back(fmt::format("{} {}", count, name_of(status)));
    }
  }
  return words.empty() ? "no checks" : fmt::format("{}", fmt::join(words, ", "));
}

std::string health_json(std::span<const HostHealth> hosts, std::span<const HealthCheck> across) {
  HealthStatus worst = worst_of(across);
  Json list = Json::array();
  for (const HostHealth& host : hosts) {
    worst = std::max(worst, worst_of(host.checks));
    list.push_back({{"host", plain(host.host)},
                    {"processes", host.processes},
                    {"status", name_of(worst_of(host.checks))},
                    {"checks", json_of(host.checks)}});
  }
  const Json json{{"schema", doctor_schema}, {"status", name_of(worst)}, {"nodes", list}, {"across", json_of(across)}};
  return json.dump(2) + "\n";
}

}  // namespace commfuse::validate
