// SPDX-License-Identifier: Apache-2.0
// Bold and colour for text that a terminal shows.
#pragma once

#include <string>
#include <string_view>

namespace commfuse {

/// Wraps text in the marks of bold and colour, or returns it as it is where they are off. Marks take no room on the
/// screen, so text is padded before it is styled.
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

/// Style of text on stdout: on where a terminal shows it, unless TERM is "dumb" or NO_COLOR is set and not empty
/// (https://no-color.org). CLICOLOR_FORCE, set to anything but 0, turns it on for files and pipes as well.
TerminalStyle stdout_style();

}  // namespace commfuse
