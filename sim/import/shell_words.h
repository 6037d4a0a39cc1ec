// SPDX-License-Identifier: Apache-2.0
// As much of a shell's grammar as launch scripts need to be read without running them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace commfuse::import {

struct ShellWord {
  std::string text;  ///< Without quotes; variables as they were written.
  int line = 1;
};

/// Words between blanks: quotes hold blanks together, a backslash takes what follows as it is, # begins a comment where
/// a word could begin. Parentheses and semicolons are blanks. A value NAME="..." that holds flags falls into its words.
std::vector<ShellWord> shell_words(std::string_view text);

/// What NAME=value says, the first of each name.
std::map<std::string, std::string, std::less<>> assignments(const std::vector<ShellWord>& words);

/// `$NAME`, `${NAME}` and `${NAME:-value}` replaced; nothing where a name is not known, or it is more than that.
std::optional<std::string> expanded(std::string_view text,
                                    const std::map<std::string, std::string, std::less<>>& variables);

}  // namespace commfuse::import
