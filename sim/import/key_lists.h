// SPDX-License-Identifier: Apache-2.0
// Lists of another program's keys that are not read: keys that change nothing here, with the reason, and keys that
// change the work and have no counterpart. All others are reported as unknown.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/import/keyed_file.h"

namespace commfuse::import {

/// Keys that change nothing, separated by blanks: whole names, or patterns with a '*' at the end ("checkpoint.*") or
/// the beginning.
struct Irrelevant {
  std::string_view why;
  std::string_view keys;
};

/// A key that changes work, memory or communication, but has no counterpart.
struct LeftOut {
  std::string_view key;
  std::string_view instead;    ///< A sentence about the assumption that takes its place.
  std::string_view neutral{};  ///< Other values, separated by blanks, that change nothing, like null, false and none.
};

/// Both lists of a program. A key in `left_out` counts even if a pattern of `irrelevant` matches it.
struct KeyLists {
  std::span<const Irrelevant> irrelevant;
  std::span<const LeftOut> left_out;
};

/// Returns the reason why a key changes nothing; empty if it may change something.
std::string_view why_irrelevant(std::span<const Irrelevant> lists, std::string_view key);

/// Returns the entry of the key; null where the key has a counterpart.
const LeftOut* find_left_out(std::span<const LeftOut> keys, std::string_view key);

/// Returns whether a value changes nothing.
bool is_neutral(const LeftOut& key, std::string_view value);

/// Adds one sentence that names the first twenty unknown keys; nothing if no key is unknown.
void note_unknown(const std::vector<std::string>& unknown, std::vector<std::string>& notes);

/// Adds a sentence for each unread key that changes the work and is not null, one for each likely misspelling of a key
/// that is read, and one for all unknown keys. `name_of` maps a key to its name in the lists.
void note_unread(
    const KeyedFile& file, const KeyLists& lists, std::vector<std::string>& notes,
    std::string_view (*name_of)(std::string_view key) = [](std::string_view key) { return key; });

}  // namespace commfuse::import
