// SPDX-License-Identifier: Apache-2.0
#include "model/text/misread.h"

#include <fmt/format.h>

#include "model/text/quantity.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Returns the text without the zeros before its first significant digit.
std::string_view without_zeros(std::string_view text) {
  while (text.size() > 1 && text[0] == '0' && is_digit(text[1])) {
    text.remove_prefix(1);
  }
  return text;
}

/// Returns true for a quantity of any kind; a day such as 01/06/2026 is not one.
bool is_quantity(std::string_view text) {
  return parse_amount(text) || parse_share(text) || parse_duration(text) || parse_span(text) || parse_size(text) ||
         parse_bandwidth(text) || parse_compute_rate(text) || parse_power(text);
}

}  // namespace

std::string misread(std::string_view text, std::string_view what, std::string_view remedy) {
  const std::string_view plain = without_zeros(text);
  if (plain.size() < text.size() && is_quantity(plain)) {
    return fmt::format("{} begins with 0, which YAML may read as octal; write {}", in_quotes(text), plain);
  }
  return fmt::format("{} is not {}; {}", in_quotes(text), what, remedy);
}

}  // namespace commfuse
