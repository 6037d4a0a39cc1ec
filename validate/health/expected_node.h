// SPDX-License-Identifier: Apache-2.0
// Whether a node is the machine that it should be: absolute, where the other checks only ask whether its parts agree.
#pragma once

#include <string>
#include <vector>

#include "validate/health/health_check.h"
#include "validate/health/management.h"
#include "validate/health/node_facts.h"

namespace commfuse::validate {

/// What the operator bought. 0 and empty: not known, and not checked.
struct ExpectedNode {
  std::string machine;  ///< As he names it: "h100-sxm".
  std::string gpu;      ///< A word that the driver's name of the GPU has: "H100".
  int gpus = 0;
  bool has_nvlink = false;
  double pcie_speed = 0.0;  ///< Of a GPU's link to its host, in GT/s, with
  int pcie_width = 0;       ///< so many lanes.
  int nics = 0;             ///< Of its network alone; NICs for storage are more.
  double nic_gigabits = 0.0;
};

inline constexpr std::string_view expected_check = "expected";

/// Checks of that name: one for each thing that is less than expected, or the one that all is there.
std::vector<HealthCheck> expected_checks(const ExpectedNode& expected, const NodeFacts& node,
                                         const ManagementFacts& management);

}  // namespace commfuse::validate
