// SPDX-License-Identifier: Apache-2.0
// Fits the costs of implementations to tables of overlapped kernels: once to all tables, and once per thread (source of
// tables) to the tables of the other threads. `score --implementations` prints the result as lines for the files of the
// implementations.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace commfuse::score {

/// Returns, as YAML, the maps `costs` and `without` of every implementation that names parameters to fit and has rows.
/// A comment with the number of rows and the errors precedes the maps. Skips tables of other kinds. Throws ConfigError
/// as score_tables does, and if there is nothing to fit.
std::string implementation_costs_yaml(const std::vector<std::filesystem::path>& tables);

}  // namespace commfuse::score
