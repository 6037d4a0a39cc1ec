// SPDX-License-Identifier: Apache-2.0
#include "reports/command_words.h"

#include <fmt/format.h>

#include <cstddef>

namespace commfuse {

void for_each_command(const CommandEntry& command, const std::function<void(const CommandEntry&)>& visit) {
  visit(command);
  for (const CommandEntry& below : command.commands) {
    for_each_command(below, visit);
  }
}

std::string words_of(const CommandEntry& command) { return fmt::format("{}", fmt::join(command.path, " ")); }

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace commfuse
