// SPDX-License-Identifier: Apache-2.0
// Walks a program's commands, and puts their words into texts.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "model/config/option_tree.h"

namespace commfuse {

/// Visits a command before the commands below it.
void for_each_command(const CommandEntry& command, const std::function<void(const CommandEntry&)>& visit);

/// Returns "commfuse-sim schedule show".
std::string words_of(const CommandEntry& command);

/// Returns the text with every `from`, from left to right, replaced by `to`.
std::string replaced(std::string text, std::string_view from, std::string_view to);

}  // namespace commfuse
