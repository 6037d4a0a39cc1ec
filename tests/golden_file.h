// SPDX-License-Identifier: Apache-2.0
// Golden files, which tests compare as a whole and ./dev renew rewrites.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace commfuse::test {

/// Returns the text of a file below tests/. If COMMFUSE_RENEW_GOLDEN is set, first overwrites it with `actual`; read
/// the diff before you commit it.
inline std::string golden_file(const std::string& below_tests, const std::string& actual) {
  const std::string path = COMMFUSE_SOURCE_DIR "/tests/" + below_tests;
  if (std::getenv("COMMFUSE_RENEW_GOLDEN") != nullptr) {
    std::ofstream{path} << actual;
  }
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace commfuse::test
