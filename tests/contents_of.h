// SPDX-License-Identifier: Apache-2.0
// Reads the contents of files that programs wrote, and of golden files.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace commfuse::test {

/// Returns the contents of a file; an empty string if it is missing.
inline std::string contents_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace commfuse::test
