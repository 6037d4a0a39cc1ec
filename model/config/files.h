// SPDX-License-Identifier: Apache-2.0
// Files from strangers: how much of them is read, and which other files they may name.
#pragma once

#include <filesystem>
#include <string>

namespace commfuse {

/// The whole file. Throws ConfigError when it cannot be read, is larger than 1 MiB or a named pipe in a folder; pipes
/// that the program was given open, as /dev/stdin or /dev/fd/63, are read.
std::string read_small_file(const std::string& path);

/// Whether a path leads out of a folder. Links are followed as far as they exist.
bool leaves(const std::filesystem::path& folder, const std::filesystem::path& path);

}  // namespace commfuse
