// SPDX-License-Identifier: Apache-2.0
#include "model/text/yaml_quotes.h"

#include <fmt/format.h>

namespace commfuse {

std::string yaml_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
    }
    quoted += code < 0x20 || code == 0x7f ? fmt::format("\\x{:02x}", code) : std::string(1, c);
  }
  return quoted + '"';
}

}  // namespace commfuse
