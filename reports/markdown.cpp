// SPDX-License-Identifier: Apache-2.0
#include "reports/markdown.h"

#include <fmt/format.h>

namespace commfuse::reports {

std::string markdown_cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    escaped += c == '|' || c == '<' ? fmt::format("\\{}", c) : std::string(1, c);
  }
  return escaped;
}

}  // namespace commfuse::reports
