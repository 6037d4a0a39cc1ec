// SPDX-License-Identifier: Apache-2.0
// A program's commands and flags as pages for those who look them up, and as completions for shells.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "model/config/option_tree.h"

namespace commfuse {

inline constexpr std::array<std::string_view, 5> page_forms{"man", "bash", "zsh", "fish", "markdown"};

/// In one of page_forms, for the version that this is: roff(7) of section 1, a completion script, or a reference in
/// Markdown.
std::string page_of(const CommandEntry& program, std::string_view form);

}  // namespace commfuse
