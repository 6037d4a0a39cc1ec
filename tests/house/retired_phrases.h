// SPDX-License-Identifier: Apache-2.0
// Finds phrases that text for users no longer contains.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace commfuse::house {

/// Returns every retired phrase, as `path:line: sentence`, in string literals of C++ and JavaScript below model, sim,
/// validate, reports, page and python, in the page's HTML, and in README.md, the pages of docs/ and docs/howto.
/// Decisions are not read, and lines with an entry of the allow-list may keep a phrase.
std::vector<std::string> retired_phrases(const std::filesystem::path& root);

}  // namespace commfuse::house
