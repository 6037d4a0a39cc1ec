// SPDX-License-Identifier: Apache-2.0
// Writes files into a folder of the user's, and replaces none.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace commfuse::sim {

/// Throws ConfigError if a file with one of these names is in the folder already.
void require_new(const std::filesystem::path& folder, const std::vector<std::string>& names);

/// Writes names and contents into a folder, which is made if it does not exist, and returns a line that says how many.
/// Throws ConfigError, and writes nothing, if one of them exists already.
std::string write_new(const std::filesystem::path& folder,
                      const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace commfuse::sim
