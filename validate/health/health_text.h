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

/// The checks of one host, and the processes of the job that run on it.
struct HostHealth {
  std::string host;
  std::vector<int> processes;
  std::vector<HealthCheck> checks;
};

/// Returns one line per check and subject, then what is wrong and what to do. Lines have at most `width` columns,
/// unless a single word is longer.
std::string health_table(std::span<const HealthCheck> checks, std::size_t width);

/// Returns a string such as "11 ok, 1 warn, 2 bad".
std::string health_totals(std::span<const HealthCheck> checks);

/// Returns the document of `doctor -o json`. `across` compares the processes; it is empty for a single process.
std::string health_json(std::span<const HostHealth> hosts, std::span<const HealthCheck> across);

}  // namespace commfuse::validate
