// SPDX-License-Identifier: Apache-2.0
#include "model/text/decimals.h"

#include <fmt/format.h>

namespace commfuse {

namespace {

bool is_zero(const std::string& digits) { return digits.find_first_of("123456789in") == std::string::npos; }

}  // namespace

std::string with_decimals(double number, int decimals) {
  std::string digits = fmt::format("{:.{}f}", number, decimals);
  return digits.starts_with('-') && is_zero(digits) ? digits.substr(1) : digits;
}

std::string with_sign(double number, int decimals) {
  const std::string digits = with_decimals(number, decimals);
  return digits.starts_with('-') || is_zero(digits) ? digits : "+" + digits;
}

}  // namespace commfuse
