// SPDX-License-Identifier: Apache-2.0
// commfuse-sim run --scope step|prefill|decode: whole models.
#pragma once

#include <string_view>
#include <vector>

#include "sim/request.h"

namespace commfuse::sim {

/// Prints one row a point and strategy and returns the exit code. Throws ConfigError for a plan that clashes, for
/// points that mix whole models with layers, and for an unknown format. Memory that does not suffice is a result.
int run_steps(const std::vector<Settings>& points, const Library& library, std::string_view format);

}  // namespace commfuse::sim
