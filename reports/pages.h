// SPDX-License-Identifier: Apache-2.0
// A program's commands and flags as reference pages, and as completions for shells.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "model/config/option_tree.h"

namespace commfuse {

inline constexpr std::array<std::string_view, 5> page_forms{"man", "bash", "zsh", "fish", "markdown"};

/// Returns a page in one of page_forms, for this program's version: roff(7) of section 1, a completion script, or a
/// reference in Markdown.
std::string page_of(const CommandEntry& program, std::string_view form);

}  // namespace commfuse
