// SPDX-License-Identifier: Apache-2.0
// Writes new files into a folder that the user names. Never replaces files.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace commfuse::sim {

/// Throws ConfigError if the folder already has a file with one of these names.
void require_new(const std::filesystem::path& folder, const std::vector<std::string>& names);

/// Writes files, given by name and content, into a folder, which is created if it does not exist. Returns a line that
/// states how many were written. Throws ConfigError, and writes nothing, if one of the files already exists.
std::string write_new(const std::filesystem::path& folder,
                      const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace commfuse::sim
