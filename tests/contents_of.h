// SPDX-License-Identifier: Apache-2.0
// What a file holds: what was written, or what a golden file says it should be.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace commfuse::test {

/// Empty for a file that is not there.
inline std::string contents_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace commfuse::test
