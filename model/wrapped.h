// SPDX-License-Identifier: Apache-2.0
// Text for a terminal: lines of at most 80 columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace commfuse {

inline constexpr std::size_t terminal_width = 80;

/// `text` broken at its spaces so that no line, its indent included, passes `width` columns, unless one word alone
/// does. The first line begins with `first`, all later ones with `later`. Every line ends with a line break.
std::string wrapped(std::string_view text, std::string_view first, std::string_view later,
                    std::size_t width = terminal_width);

}  // namespace commfuse
