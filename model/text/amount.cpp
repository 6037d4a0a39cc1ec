// SPDX-License-Identifier: Apache-2.0
#include "model/text/amount.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

namespace commfuse {

std::string large_number(double number) {
  constexpr std::array<std::pair<double, const char*>, 4> scales{{{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}}};
  constexpr double rounds_up = 0.99995;  // A share of a scale from here on rounds to 1000.0 of the scale below.
  for (const auto& [scale, letter] : scales) {
    if (std::abs(number) >= rounds_up * scale) {
      const double scaled_number = number / scale;
      return fmt::format("{:.{}f}{}", scaled_number, std::abs(scaled_number) < 99.995 ? 2 : 1, letter);
    }
  }
  return fmt::format("{:.4g}", number);
}

std::string amount_of_money(const std::string& currency, double amount) {
  const double size = std::abs(amount);
  const std::string digits =
      size >= 999.995 ? large_number(size) : fmt::format("{:.{}f}", size, size > 0.0 && size < 0.99995 ? 4 : 2);
  return fmt::format("{}{}{}", amount < 0.0 ? "-" : "", currency, digits);
}

std::string amount_of_days(double days) {
  constexpr double first_tenth = 0.095;
  return days < first_tenth ? fmt::format("{:.2g}", days) : fmt::format("{:.1f}", days);
}

}  // namespace commfuse
