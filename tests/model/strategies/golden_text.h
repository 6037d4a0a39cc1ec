// SPDX-License-Identifier: Apache-2.0
// Golden texts, which tests compare as a whole. They are in golden/, next to the tests.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace commfuse {

/// Returns the golden text `name`. If COMMFUSE_RENEW_GOLDEN is set, first overwrites it with `actual`; read the diff
/// before you commit it.
inline std::string golden_text(const std::string& name, const std::string& actual) {
  const std::string path = std::string{COMMFUSE_SOURCE_DIR} + "/tests/model/strategies/golden/" + name;
  if (std::getenv("COMMFUSE_RENEW_GOLDEN") != nullptr) {
    std::ofstream{path} << actual;
  }
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace commfuse
