// SPDX-License-Identifier: Apache-2.0
// The part of a shell's grammar that is needed to read launch scripts without running them.
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
  std::string text;  ///< Without quotes; variables as written.
  int line = 1;
};

/// Values by name.
using Variables = std::map<std::string, std::string, std::less<>>;

/// Largest size of an expanded text, in bytes. Each variable adds 1 to the size.
inline constexpr std::size_t longest_expansion = std::size_t{1} << 18;

/// Splits a text at blanks: quotes hold blanks together, a backslash quotes the next character, # begins a comment
/// where a word could begin. Parentheses and semicolons count as blanks, so an array yields its words; an element
/// "--flag value" yields two words, like bash with an array that is expanded without quotes. A value NAME="..." or
/// NAME+="..." that contains flags is split into words; nested values are split in the same way, down to eight levels.
std::vector<ShellWord> shell_words(std::string_view text);

/// Returns the value of every NAME=value: the last one for each name, followed by the values that NAME+=value appends.
/// NAME=${NAME:-value} keeps an earlier value.
Variables assignments(const std::vector<ShellWord>& words);

/// A variable that is assigned different values, for example in the branches of an `if`.
struct Reassigned {
  std::string name;
  std::vector<std::string> values;  ///< The first few distinct values, in order; for an array its words.
  bool holds_flags = false;         ///< shell_words returns the flags of all values; otherwise the last value counts.
};

/// Returns by name the reassigned variables that the text uses; an assignment that appends, or names the variable
/// itself, does not count.
std::vector<Reassigned> reassigned(std::string_view text);

/// Replaces `$NAME`, `${NAME}` and `${NAME:-value}`. Returns nullopt if a name is unknown or refers to itself, if the
/// text has another `${...}` expression, or if the result would exceed longest_expansion.
std::optional<std::string> expanded(std::string_view text, const Variables& variables);

}  // namespace commfuse::import
