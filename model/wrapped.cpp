// SPDX-License-Identifier: Apache-2.0
#include "model/wrapped.h"

#include <algorithm>

namespace commfuse {

std::string wrapped(std::string_view text, std::string_view first, std::string_view later, std::size_t width) {
  std::string lines;
  std::string line(first);
  bool has_word = false;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t space = std::min(text.find(' ', start), text.size());
    const std::string_view word = text.substr(start, space - start);
    if (has_word && line.size() + 1 + word.size() > width) {
      lines += line + "\n";
      line = later;
      has_word = false;
    }
    line += has_word ? " " : "";
    line += word;
    has_word = true;
    start = space + 1;
  }
  return lines + line + "\n";
}

}  // namespace commfuse
