// SPDX-License-Identifier: Apache-2.0
#include "model/terminal_style.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace commfuse {

namespace {

/// Returns the value of an environment variable; empty if it is not set.
std::string_view variable(const char* name) {
  // Safe, because no thread sets environment variables.
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

}  // namespace

std::string TerminalStyle::marked(std::string_view mark, std::string_view text) const {
  if (!is_on_ || text.empty()) {
    return std::string(text);
  }
  const bool ends_line = text.ends_with('\n');  // A mark that stays on over a line break colours the next line's start.
  return fmt::format("\x1b[{}m{}\x1b[0m{}", mark, text.substr(0, text.size() - (ends_line ? 1 : 0)),
                     ends_line ? "\n" : "");
}

std::string TerminalStyle::bold(std::string_view text) const { return marked("1", text); }
std::string TerminalStyle::gray(std::string_view text) const { return marked("90", text); }
std::string TerminalStyle::red(std::string_view text) const { return marked("31", text); }

TerminalStyle stdout_style() {
  if (!variable("NO_COLOR").empty()) {
    return TerminalStyle(false);
  }
  if (const std::string_view force = variable("CLICOLOR_FORCE"); !force.empty() && force != "0") {
    return TerminalStyle(true);
  }
  return TerminalStyle(::isatty(STDOUT_FILENO) != 0 && variable("TERM") != "dumb");
}

}  // namespace commfuse
