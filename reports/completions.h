// SPDX-License-Identifier: Apache-2.0
// Completions of a program's commands, flags and values for shells. The scripts run the program to get the names of
// catalogues when they complete a word, and contain all other words themselves.
#pragma once

#include <string>

#include "model/config/option_tree.h"

namespace commfuse {

std::string bash_completion(const CommandEntry& program);
/// Returns a script that uses the functions of bash. If the file is in zsh's function path, zsh runs it at the first
/// completion.
std::string zsh_completion(const CommandEntry& program);
std::string fish_completion(const CommandEntry& program);

}  // namespace commfuse
