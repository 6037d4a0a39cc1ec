// SPDX-License-Identifier: Apache-2.0
// Checks that a node is the expected machine. The other checks only test whether the parts of a node fit together.
#pragma once

#include <string>
#include <vector>

#include "validate/health/health_check.h"
#include "validate/health/management.h"
#include "validate/health/node_facts.h"

namespace commfuse::validate {

/// The machine that the operator bought. A value that is 0 or empty is unknown and not checked.
struct ExpectedNode {
  std::string machine;  ///< The operator's name for it: "h100-sxm".
  std::string gpu;      ///< A word in the driver's name of the GPU: "H100".
  int gpus = 0;
  bool has_nvlink = false;
  double pcie_speed = 0.0;  ///< Speed of a GPU's link to its host, in GT/s.
  int pcie_width = 0;       ///< Lanes of that link.
  int nics = 0;             ///< NICs of its network, not counting those for storage.
  double nic_gigabits = 0.0;
};

inline constexpr std::string_view expected_check = "expected";

/// Returns checks named `expected_check`: one for each property that differs from the expectation, or a single ok
/// check.
std::vector<HealthCheck> expected_checks(const ExpectedNode& expected, const NodeFacts& node,
                                         const ManagementFacts& management);

}  // namespace commfuse::validate
