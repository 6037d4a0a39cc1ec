// SPDX-License-Identifier: Apache-2.0
// Compares the facts that the processes of one job must have in common, and names the processes that differ.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "validate/health/health_check.h"
#include "validate/health/management.h"
#include "validate/health/node_facts.h"

namespace commfuse::validate {

/// A fact that is the same on every node of a healthy job.
struct CommonFact {
  std::string name;                         ///< "driver"
  std::string value;                        ///< "550.54.15"; empty for none.
  HealthStatus unlike = HealthStatus::bad;  ///< Severity when nodes differ.
  friend bool operator==(const CommonFact&, const CommonFact&) = default;
};

/// The report of one process.
struct NodeReport {
  std::string host;
  std::vector<HealthCheck> checks;
  std::vector<CommonFact> facts;
  friend bool operator==(const NodeReport&, const NodeReport&) = default;
};

std::vector<CommonFact> common_facts(const NodeFacts& node, const ManagementFacts& management);

/// Returns one check for each fact that differs; it names the processes and hosts outside the majority. If no fact
/// differs, returns a single check that says so. `reports` is indexed by process.
std::vector<HealthCheck> differences(std::span<const NodeReport> reports);

/// Converts a report to text for another process, and back. Reading throws std::runtime_error for any other string.
std::string packed_report(const NodeReport& report);
NodeReport unpacked_report(const std::string& text);

}  // namespace commfuse::validate
