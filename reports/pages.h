// SPDX-License-Identifier: Apache-2.0
// A program's commands and flags as reference pages, and as completions for shells.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "model/config/option_tree.h"

namespace commfuse {

inline constexpr std::array<std::string_view, 5> page_formats{"man", "bash", "zsh", "fish", "markdown"};

/// Returns a page in one of page_formats, for this program's version: roff(7) of section 1, a completion script, or a
/// reference in Markdown.
std::string render_page(const CommandEntry& program, std::string_view format);

}  // namespace commfuse
