// SPDX-License-Identifier: Apache-2.0
// The checks of one node: facts in, what is wrong and how to mend it out.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "validate/health/health_check.h"
#include "validate/health/management.h"
#include "validate/health/node_facts.h"

namespace commfuse::validate {

/// In the order in which they are made.
std::span<const std::string_view> health_check_names();

/// Every check at least once: where nothing is wrong, with what was found. `skipped`: names of checks to leave out.
std::vector<HealthCheck> health_checks(const NodeFacts& node, const ManagementFacts& management,
                                       std::span<const std::string> skipped = {});

}  // namespace commfuse::validate
