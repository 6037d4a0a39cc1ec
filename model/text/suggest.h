// SPDX-License-Identifier: Apache-2.0
// "Did you mean ...?" for keys, names and flags.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace commfuse {

/// Returns the text with A to Z in lower case.
std::string lowercase(std::string_view text);

/// Returns the number of edits that turn one word into the other: insert, delete or replace a character, or swap two
/// neighbours (optimal string alignment). Upper and lower case count as equal.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Returns the known word nearest to the wrong one, the first on ties; nullopt when none is near enough. Near means at
/// most one edit per three letters of the longer word, or one edit in shorter words.
std::optional<std::string> nearest(std::string_view wrong, std::span<const std::string_view> known);

/// Returns the remedy of a message about a wrong word: "did you mean 'latency'?", or "known keys: a, b" with `what` =
/// "keys", or "no keys are defined" if there are none.
std::string remedy_for(std::string_view wrong, std::span<const std::string_view> known, std::string_view what);

/// Returns an untrusted string between single quotes, on one line of a message: control characters escaped, long text
/// cut.
std::string in_quotes(std::string_view text);

}  // namespace commfuse
