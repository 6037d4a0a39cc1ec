// SPDX-License-Identifier: Apache-2.0
// The rules of the house that a machine can read off the sources: who includes whom, and the SPDX line.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace commfuse::house {

/// Every breach of a rule below `root`, in order of path, as `path:line: sentence`. Empty: the house is in order.
std::vector<std::string> violations(const std::filesystem::path& root);

/// How many files violations() reads below `root`; a check that looked at nothing has shown nothing.
std::size_t files_read(const std::filesystem::path& root);

}  // namespace commfuse::house
