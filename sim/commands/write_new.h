// SPDX-License-Identifier: Apache-2.0
// Files that a command makes in a folder of the user's.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace commfuse::sim {

/// Throws ConfigError where a file of one of these names is in the folder already.
void require_new(const std::filesystem::path& folder, const std::vector<std::string>& names);

/// Names and contents, in a folder that is made where there is none; returns a line that says how many. Throws
/// ConfigError, and writes nothing, where one of them is there already.
std::string write_new(const std::filesystem::path& folder,
                      const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace commfuse::sim
