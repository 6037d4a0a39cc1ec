// SPDX-License-Identifier: Apache-2.0
// The checks of one node: they turn facts into problems and remedies.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "validate/health/health_check.h"
#include "validate/health/management.h"
#include "validate/health/node_facts.h"

namespace commfuse::validate {

/// Returns the names in the order in which the checks run.
std::span<const std::string_view> health_check_names();

/// Returns every check that is not in `skipped` at least once; a check that finds nothing wrong states what it
/// observed.
std::vector<HealthCheck> health_checks(const NodeFacts& node, const ManagementFacts& management,
                                       std::span<const std::string> skipped = {});

}  // namespace commfuse::validate
