// SPDX-License-Identifier: Apache-2.0
// Wraps text for a terminal and determines the terminal's width.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace commfuse {

/// Columns of text when no terminal shows it.
inline constexpr std::size_t page_width = 80;

/// Returns COLUMNS if it is a number above 0, else the width of the terminal on stdout; nullopt if stdout is a file or
/// a pipe.
std::optional<std::size_t> terminal_columns();

/// Returns the columns for text on stdout: terminal_columns() clamped to 60 to 120, or page_width without a terminal.
std::size_t terminal_width();

/// Breaks `text` at its spaces so that no line, its indent included, is longer than `width` columns, except a line of
/// one long word. The first line begins with `first`, all later lines with `later`. Every line ends with a line break.
std::string wrapped(std::string_view text, std::string_view first, std::string_view later,
                    std::size_t width = terminal_width());

}  // namespace commfuse
