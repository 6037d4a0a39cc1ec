// SPDX-License-Identifier: Apache-2.0
// The rules of the house that a machine can read off the sources: who includes whom, that no two folders include each
// other, the SPDX line, that only model/math computes transcendental functions, and that every folder says what lives
// there.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace commfuse::house {

/// Every breach of a rule for sources below `root`, in order of path, as `path:line: sentence`. Empty: the house is in
/// order.
std::vector<std::string> violations(const std::filesystem::path& root);

/// The same for folders: every one below model, sim, validate, reports and bench that holds C++ or CUDA itself has a
/// README.md, whose first line is `# ` and the folder's path from `root`. Names of sources, pages, YAML files and
/// scripts between backquotes are those of files that are there: with a slash from `root` on, else in the same folder.
/// Globs and whatever has a space in it are no names.
std::vector<std::string> unexplained_folders(const std::filesystem::path& root);

/// Algorithms of std::ranges that model, sim, reports or page name and page/shim/libcxx14.h does not have: the library
/// of Debian's Emscripten lacks them, so the page would not compile. Each once, as `path:line: sentence`.
std::vector<std::string> algorithms_the_page_lacks(const std::filesystem::path& root);

/// How many files violations() reads below `root`; a check that looked at nothing has shown nothing.
std::size_t files_read(const std::filesystem::path& root);

}  // namespace commfuse::house
