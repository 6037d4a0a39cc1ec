// SPDX-License-Identifier: Apache-2.0
// Bold and colour for text that a terminal shows.
#pragma once

#include <string>
#include <string_view>

namespace commfuse {

/// Wraps text in escape sequences for bold or colour if styling is on; otherwise returns it unchanged. The sequences
/// have no width on the screen, so callers pad text before they style it.
class TerminalStyle {
 public:
  explicit constexpr TerminalStyle(bool is_on = false) : is_on_(is_on) {}

  [[nodiscard]] constexpr bool is_on() const { return is_on_; }
  [[nodiscard]] std::string bold(std::string_view text) const;
  [[nodiscard]] std::string gray(std::string_view text) const;
  [[nodiscard]] std::string red(std::string_view text) const;

 private:
  [[nodiscard]] std::string marked(std::string_view mark, std::string_view text) const;

  bool is_on_;
};

/// Returns the style of text on stdout: off if NO_COLOR is set and not empty (https://no-color.org); else on if
/// CLICOLOR_FORCE is set and neither empty nor 0; else on if stdout is a terminal and TERM is not "dumb".
TerminalStyle stdout_style();

}  // namespace commfuse
