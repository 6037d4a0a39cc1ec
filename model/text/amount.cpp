// SPDX-License-Identifier: Apache-2.0
#include "model/text/amount.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

namespace commfuse {

std::string large_number(double number) {
  constexpr std::array<std::pair<double, const char*>, 4> scales{{{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}}};
  for (const auto& [scale, letter] : scales) {
    if (std::abs(number) >= scale) {
      const double scaled_number = number / scale;
      return fmt::format("{:.{}f}{}", scaled_number, std::abs(scaled_number) < 100.0 ? 2 : 1, letter);
    }
  }
  return fmt::format("{:.4g}", number);
}

std::string amount_of_money(const std::string& currency, double amount) {
  const double size = std::abs(amount);
  const std::string digits =
      size >= 1e3 ? large_number(size) : fmt::format("{:.{}f}", size, size > 0.0 && size < 1.0 ? 4 : 2);
  return fmt::format("{}{}{}", amount < 0.0 ? "-" : "", currency, digits);
}

}  // namespace commfuse
