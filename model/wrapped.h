// SPDX-License-Identifier: Apache-2.0
// Text for a terminal, and how wide that is.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace commfuse {

/// Columns of text where no terminal shows it.
inline constexpr std::size_t page_width = 80;

/// COLUMNS where it is a number, else those of the terminal that stdout is; nothing for files and pipes.
std::optional<std::size_t> terminal_columns();

/// Columns that text on stdout may take: those of the terminal, 60 to 120, or page_width.
std::size_t terminal_width();

/// `text` broken at its spaces so that no line, its indent included, passes `width` columns, unless one word alone
/// does. The first line begins with `first`, all later ones with `later`. Every line ends with a line break.
std::string wrapped(std::string_view text, std::string_view first, std::string_view later,
                    std::size_t width = terminal_width());

}  // namespace commfuse
