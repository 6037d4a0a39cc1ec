// SPDX-License-Identifier: Apache-2.0
// As much of a shell's grammar as launch scripts need to be read without running them.
#pragma once

#include <cstddef>
#include <functional>
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

/// By name.
using Variables = std::map<std::string, std::string, std::less<>>;

/// No text grows longer when its variables are replaced, in bytes; a variable counts as one more.
inline constexpr std::size_t longest_expansion = std::size_t{1} << 18;

/// Words between blanks: quotes hold blanks together, a backslash takes what follows as it is, # begins a comment where
/// a word could begin. Parentheses and semicolons are blanks, so arrays are their words; "--flag value" is two, as bash
/// makes it of an array that is expanded without quotes. A value NAME="..." or NAME+="..." that holds flags falls
/// into its words, and such a value in it too, down to eight levels.
std::vector<ShellWord> shell_words(std::string_view text);

/// What NAME=value says, the last of each name, and behind it what NAME+=value appends; NAME=${NAME:-value} leaves what
/// one before it said.
Variables assignments(const std::vector<ShellWord>& words);

/// A variable that is assigned different values, as in the branches of an `if`.
struct Reassigned {
  std::string name;
  std::vector<std::string> values;  ///< In their order, the first few of those that differ; of an array its words.
  bool holds_flags = false;         ///< shell_words gives the flags of all values; otherwise the last one counts.
};

/// By name, those that the text uses; what appends, or names the variable itself, is no other value.
std::vector<Reassigned> reassigned(std::string_view text);

/// `$NAME`, `${NAME}` and `${NAME:-value}` replaced; nothing where a name is not known, is replaced by itself, or it is
/// more than that, and where the text would grow above longest_expansion.
std::optional<std::string> expanded(std::string_view text, const Variables& variables);

}  // namespace commfuse::import
