// SPDX-License-Identifier: Apache-2.0
// Breaks messages on stderr at the width of the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace commfuse {

/// Returns lines of text for stderr. On a terminal, long lines are broken at terminal_width(), and the rest of each is
/// indented. For files and pipes, in which programs look for whole sentences, lines are unchanged.
std::string for_stderr(std::string_view lines);

/// Breaks each line at its spaces so that it fits `width` columns, except for longer words; the rest of a line is
/// indented by two columns more than its beginning. Every line of the result ends with a line break.
std::string broken_lines(std::string_view lines, std::size_t width);

}  // namespace commfuse
