// SPDX-License-Identifier: Apache-2.0
#include "reports/commas.h"

#include <fmt/format.h>

namespace commfuse::reports {

std::string with_commas(std::int64_t count) {
  std::string digits = fmt::format("{}", count);
  const std::size_t first = count < 0 ? 1 : 0;
  if (digits.size() - first < 5) {
    return digits;
  }
  for (std::size_t position = digits.size() - 3; position > first; position -= 3) {
    digits.insert(position, 1, ',');
    if (position <= first + 3) {
      break;
    }
  }
  return digits;
}

}  // namespace commfuse::reports
