// SPDX-License-Identifier: Apache-2.0
// Golden texts of strategies. They are in golden/, next to the tests.
#pragma once

#include <string>

#include "tests/golden_file.h"

namespace commfuse {

/// Returns the golden text `name`, renewed as golden_file() says.
inline std::string golden_text(const std::string& name, const std::string& actual) {
  return test::golden_file("model/strategies/golden/" + name, actual);
}

}  // namespace commfuse
