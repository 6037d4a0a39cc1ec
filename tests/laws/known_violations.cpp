// SPDX-License-Identifier: Apache-2.0
#include "tests/laws/known_violations.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <stdexcept>

namespace commfuse::laws {

namespace {

void change(Setting& setting, const YAML::Node& choices, const YAML::Node& machine) {
  for (const auto& entry : choices) {
    const auto key = entry.first.as<std::string>();
    const auto text = entry.second.as<std::string>();
    const Field* field = find_field(key);
    if (field == nullptr || mistake_in(*field, text)) {
      throw std::runtime_error(fmt::format("'{}: {}' is not a run setting", key, text));
    }
    setting = setting.with(key, text);
  }
  for (const auto& entry : machine) {
    setting = setting.with({entry.first.as<std::string>(), entry.second.as<double>()});
  }
}

std::map<std::string, std::vector<std::string>> conditions_of(const YAML::Node& node) {
  std::map<std::string, std::vector<std::string>> conditions;
  for (const auto& entry : node) {
    conditions[entry.first.as<std::string>()] = entry.second.IsSequence() ? entry.second.as<std::vector<std::string>>()
                                                                          : std::vector{entry.second.as<std::string>()};
  }
  return conditions;
}

KnownViolation known_violation_of(const std::string& cause, const YAML::Node& node) {
  KnownViolation known{.cause = cause};
  const auto law = node["law"].as<std::string>();
  known.law = find_law(law);
  if (known.law == nullptr) {
    throw std::runtime_error(fmt::format("unknown law '{}'", law));
  }
  known.factor = node["factor"].as<double>();
  change(known.before, node["setting"], {});
  known.after = known.before;
  change(known.after, node["change"], node["machine"]);
  known.where = conditions_of(node["where"]);
  return known;
}

}  // namespace

std::vector<KnownViolation> read_known_violations(const std::string& path) {
  std::vector<KnownViolation> violations;
  for (const YAML::Node& cause : YAML::LoadFile(path)) {
    for (const YAML::Node& violation : cause["violations"]) {
      violations.push_back(known_violation_of(cause["cause"].as<std::string>(), violation));
    }
  }
  return violations;
}

bool is_known(const std::vector<KnownViolation>& known, const Law& law, const Setting& setting, double factor) {
  return std::any_of(known.begin(), known.end(), [&](const KnownViolation& candidate) {
    constexpr double rounding = 1.001;  // Factors are written with a few digits.
    return candidate.law == &law && factor <= candidate.factor * rounding &&
           std::all_of(candidate.where.begin(), candidate.where.end(), [&](const auto& condition) {
             const auto& [key, values] = condition;
             return std::find(values.begin(), values.end(), setting.text(key)) != values.end();
           });
  });
}

}  // namespace commfuse::laws
