// SPDX-License-Identifier: Apache-2.0
// Phrases that text for users no longer has.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace commfuse::house {

/// Every retired phrase, as `path:line: sentence`, in string literals of C++ below model, sim, validate and reports,
/// and in README.md and the pages of docs/. Decisions and lines with an entry of the allow-list keep theirs.
std::vector<std::string> retired_phrases(const std::filesystem::path& root);

}  // namespace commfuse::house
