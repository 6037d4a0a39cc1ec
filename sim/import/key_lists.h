// SPDX-License-Identifier: Apache-2.0
// Lists of another program's keys that are not read: keys that do not affect a prediction, with the reason, and keys
// that change the work but have no counterpart. Unread keys on neither list are reported as unknown.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/import/keyed_file.h"

namespace commfuse::import {

/// Keys that change nothing, separated by spaces: whole names, or patterns with a '*' at the end ("checkpoint.*") or
/// the beginning.
struct Irrelevant {
  std::string_view why;
  std::string_view keys;
};

/// A key that changes work, memory or communication, but has no counterpart.
struct Unsupported {
  std::string_view key;
  std::string_view instead;  ///< The assumption made instead, for messages.
  /// Values that change nothing, separated by spaces. Null and none never change anything; false changes something only
  /// if "true" is in this list.
  std::string_view neutral{};
};

/// The assumption that replaces a division of layers among pipeline stages in a file or on a command line.
inline constexpr std::string_view even_stages = "layers are divided as evenly as possible among stages";

/// Both lists of a program. A key in `unsupported` is reported even if a pattern of `irrelevant` matches the key.
struct KeyLists {
  std::span<const Irrelevant> irrelevant;
  std::span<const Unsupported> unsupported;
};

/// Returns the reason why a key changes nothing; empty if it may change something.
std::string_view why_irrelevant(std::span<const Irrelevant> lists, std::string_view key);

/// Returns the entry of the key, or null if the list lacks the key.
const Unsupported* find_unsupported(std::span<const Unsupported> keys, std::string_view key);

/// Returns whether this value of the key changes nothing.
bool is_neutral(const Unsupported& key, std::string_view value);

/// Adds a sentence that names the first twenty unknown keys. Does nothing if `unknown` is empty.
void note_unknown(const std::vector<std::string>& unknown, std::vector<std::string>& notes);

/// Adds a sentence for each unread key that changes the work and whose value is not neutral, a sentence for each likely
/// misspelling of a readable key, and a single sentence for all unknown keys. `name_of` maps a key to its name in the
/// lists.
void note_unread(
    const KeyedFile& file, const KeyLists& lists, std::vector<std::string>& notes,
    std::string_view (*name_of)(std::string_view key) = [](std::string_view key) { return key; });

}  // namespace commfuse::import
