// SPDX-License-Identifier: Apache-2.0
#include "reports/figure/markup.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace commfuse::reports {

namespace {

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; }

/// Returns the number of bytes of the UTF-8 sequence that `first` begins; 0 if it cannot begin one.
std::size_t length_of(unsigned char first) {
  return first < 0x80U                     ? 1
         : first >= 0xc2U && first < 0xe0U ? 2
         : first >= 0xe0U && first < 0xf0U ? 3
         : first >= 0xf0U && first < 0xf5U ? 4
                                           : 0;
}

bool is_character_of_xml(std::uint32_t code) {
  return code == 0x9 || code == 0xa || code == 0xd || (code >= 0x20 && code < 0xd800) ||
         (code >= 0xe000 && code < 0xfffe) || (code >= 0x10000 && code < 0x110000);
}

/// Returns the number of bytes of the first character; 0 if it is not valid.
std::size_t character_length(std::string_view text) {
  constexpr std::array<std::uint32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
  constexpr std::array<unsigned, 5> payload{0, 0x7f, 0x1f, 0x0f, 0x07};
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = length_of(first);
  if (length == 0 || length > text.size() ||
      !std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(length), continues)) {
    return 0;
  }
  std::uint32_t code = first & payload[length];
  for (const char byte : text.substr(1, length - 1)) {
    code = code << 6U | (static_cast<unsigned char>(byte) & 0x3fU);
  }
  return code >= smallest[length] && is_character_of_xml(code) ? length : 0;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    switch (text.front()) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      case '\'': safe += "&#39;"; break;
      default: safe += length == 0 ? "\xef\xbf\xbd" : text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return safe;
}

}  // namespace commfuse::reports
