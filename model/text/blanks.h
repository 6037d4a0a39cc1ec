// SPDX-License-Identifier: Apache-2.0
// Blanks between the words of a line.
#pragma once

#include <string_view>

namespace commfuse {

/// A carriage return counts as blank, because files from Windows end their lines with it.
inline constexpr std::string_view line_blanks = " \t\r";

/// Returns the text without the blanks around it.
inline std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(line_blanks);
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(line_blanks) - first + 1);
}

}  // namespace commfuse
