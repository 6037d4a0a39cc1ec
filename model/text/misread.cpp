// SPDX-License-Identifier: Apache-2.0
#include "model/text/misread.h"

#include <fmt/format.h>

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

}  // namespace

std::string misread(std::string_view text, std::string_view what, std::string_view remedy) {
  const std::string_view plain = without_zeros(text);
  if (plain.size() < text.size()) {
    return fmt::format("{} begins with 0, which YAML may read as octal; write {}", in_quotes(text), plain);
  }
  return fmt::format("{} is not {}; {}", in_quotes(text), what, remedy);
}

}  // namespace commfuse
