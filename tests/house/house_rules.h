// SPDX-License-Identifier: Apache-2.0
// Rules of the house that a machine can check in the sources: which folder may include which, that no two folders
// include each other, the SPDX line, one type per name, that only model/math computes transcendental functions, and
// that every folder has a README.md.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace commfuse::house {

/// Returns every breach of a rule for sources below `root`, as `path:line: sentence`, in order of path; folders that
/// include each other come last.
std::vector<std::string> violations(const std::filesystem::path& root);

/// Returns every breach of a rule for folders. Every folder below model, sim, validate, reports, python and bench that
/// directly contains C++ or CUDA must have a README.md whose first line is `# ` and the folder's path from `root`.
/// Sources, pages, YAML files and scripts that the README names between backquotes must exist: relative to `root` if
/// the name has a slash, otherwise in the same folder. Globs and texts with a space are not names.
std::vector<std::string> unexplained_folders(const std::filesystem::path& root);

/// Returns the algorithms of std::ranges that model, sim, reports or page use and page/shim/libcxx14.h lacks, each
/// once, as `path:line: sentence`. The page would not compile with them, because the library of Debian's Emscripten
/// lacks them too.
std::vector<std::string> algorithms_the_page_lacks(const std::filesystem::path& root);

/// Returns the selectors that style sheets of reports and page name twice in the same place: at the top level, or
/// within the same @-rule; as `path: sentence`. The second rule belongs in the first.
std::vector<std::string> selectors_styled_twice(const std::filesystem::path& root);

/// Returns how many files violations() reads below `root`, because a check of no files shows nothing.
std::size_t files_read(const std::filesystem::path& root);

}  // namespace commfuse::house
