// SPDX-License-Identifier: Apache-2.0
// Fits the costs of implementations to tables of overlapped kernels, once to all tables and again without each: `score
// --implementations` prints the lines of their files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace commfuse::score {

/// Returns the maps `costs` and `without` of every implementation that names parameters to fit and has rows, each after
/// a comment with its rows and errors. Skips tables of other kinds. Throws ConfigError as score_tables does, and where
/// there is nothing to fit.
std::string implementation_costs_yaml(const std::vector<std::filesystem::path>& tables);

}  // namespace commfuse::score
