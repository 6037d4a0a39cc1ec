// SPDX-License-Identifier: Apache-2.0
// Fits the costs of implementations to tables of overlapped kernels, all of them and again without each: `score
// --implementations` prints the lines of their files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace commfuse::score {

/// The maps `costs` and `without` of every implementation that names parameters to fit and has rows, each behind a
/// comment with its rows and errors. Tables of other kinds are passed over. Throws ConfigError as score_tables does,
/// and where there is nothing to fit.
std::string implementation_costs_yaml(const std::vector<std::filesystem::path>& tables);

}  // namespace commfuse::score
