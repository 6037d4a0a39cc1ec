// SPDX-License-Identifier: Apache-2.0
// Texts that tests compare whole, kept beside them in golden/.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace commfuse {

/// Returns the golden text of that name. With COMMFUSE_RENEW_GOLDEN set it first becomes `actual`: read the difference
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
