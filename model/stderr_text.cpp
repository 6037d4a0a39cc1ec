// SPDX-License-Identifier: Apache-2.0
#include "model/stderr_text.h"

#include <unistd.h>

#include <algorithm>

#include "model/wrapped.h"

namespace commfuse {

std::string broken_lines(std::string_view lines, std::size_t width) {
  std::string text;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    const std::size_t start = std::min(line.find_first_not_of(' '), line.size());
    const std::string indent(start, ' ');
    text += line.size() <= width ? std::string(line) + "\n" : wrapped(line.substr(start), indent, indent + "  ", width);
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return text;
}

std::string for_stderr(std::string_view lines) {
  return ::isatty(STDERR_FILENO) == 0 ? std::string(lines) : broken_lines(lines, terminal_width());
}

}  // namespace commfuse
