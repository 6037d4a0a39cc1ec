// SPDX-License-Identifier: Apache-2.0
// Parses the part of a shell's grammar that is needed to read launch scripts without running them.
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
  std::string text;  ///< Without quotes; variables are not expanded.
  int line = 1;
  std::vector<std::size_t> joins;  ///< Places in `text` where a backslash joined two lines.
};

/// The value of each variable, by name.
using Variables = std::map<std::string, std::string, std::less<>>;

/// Largest size of an expanded text, in bytes. Each variable adds 1 to the size.
inline constexpr std::size_t longest_expansion = std::size_t{1} << 18;

/// Splits a string at blanks. Quotes keep blanks in a word, a backslash quotes the next character, and # begins a
/// comment where a word could begin. Parentheses and semicolons count as blanks, so an array yields its words. A quoted
/// word "--flag value" yields two words, as in bash when an array is expanded without quotes. A value NAME="..." or
/// NAME+="..." that contains flags is split into words; nested values are split in the same way, down to eight levels.
std::vector<ShellWord> shell_words(std::string_view text);

/// Returns the value of each variable: the value of the last NAME=value, followed by the values of later NAME+=value.
/// NAME=${NAME:-value} keeps an earlier value.
Variables assignments(const std::vector<ShellWord>& words);

/// A variable that is assigned different values, for example in the branches of an `if`.
struct Reassigned {
  std::string name;
  std::vector<std::string> values;  ///< The first few distinct values, in order; the value of an array is its words.
  bool holds_flags = false;  ///< A value has flags; shell_words() returns those of all values, not only of the last.
};

/// Returns the reassigned variables that the text uses, sorted by name. Ignores assignments that append to a variable
/// or use its earlier value.
std::vector<Reassigned> reassigned(std::string_view text);

/// Expands `$NAME`, `${NAME}` and `${NAME:-value}`, whose value may contain `$NAME`. Returns nullopt if a variable is
/// unknown or refers to itself, if the text has any other `${...}` expression, or if the result would exceed
/// longest_expansion.
std::optional<std::string> expanded(std::string_view text, const Variables& variables);

}  // namespace commfuse::import
