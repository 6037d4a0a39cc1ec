// SPDX-License-Identifier: Apache-2.0
#include "model/columns.h"

namespace commfuse {

namespace {

bool begins_letter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U; }

}  // namespace

std::string cut(std::string text, std::size_t width) {
  std::size_t letters = 0;
  std::size_t kept = 0;  // bytes of the characters that stay if the text is cut
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (begins_letter(text[i])) {
      kept = letters == width - 2 ? i : kept;
      ++letters;
    }
  }
  return letters <= width ? text : text.substr(0, kept) + "..";
}

}  // namespace commfuse
