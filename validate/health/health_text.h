// SPDX-License-Identifier: Apache-2.0
// Checks as a table for people and as JSON for programs.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "validate/health/health_check.h"

namespace commfuse::validate {

inline constexpr const char* doctor_schema = "commfuse.doctor/1";

/// The checks of one host, made by some processes there.
struct HostHealth {
  std::string host;
  std::vector<int> processes;
  std::vector<HealthCheck> checks;
};

/// One line a check and its subject, then what is wrong and what to do; no line passes `width` columns where no word
/// alone does.
std::string health_table(std::span<const HealthCheck> checks, std::size_t width);

/// "11 ok, 1 warn, 2 bad".
std::string health_totals(std::span<const HealthCheck> checks);

/// The document of `doctor -o json`; `across` compares the processes, and is empty for one.
std::string health_json(std::span<const HostHealth> hosts, std::span<const HealthCheck> across);

}  // namespace commfuse::validate
