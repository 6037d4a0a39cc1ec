// SPDX-License-Identifier: Apache-2.0
// Keys of another program that are not read: those that change nothing here, with the reason, and those that change the
// work and have no counterpart. All others are named as unknown.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/import/keyed_file.h"

namespace commfuse::import {

/// Keys that change nothing, between blanks: whole, or with a '*' at their end ("checkpoint.*") or beginning.
struct Irrelevant {
  std::string_view why;
  std::string_view keys;
};

/// A key that changes work, memory or communication.
struct LeftOut {
  std::string_view key;
  std::string_view instead;    ///< What is assumed instead, a sentence.
  std::string_view neutral{};  ///< Values between blanks with which it changes nothing, beside null, false and none.
};

/// A key of `left_out` counts, whatever `irrelevant` says of it.
struct KeyLists {
  std::span<const Irrelevant> irrelevant;
  std::span<const LeftOut> left_out;
};

/// Why a key changes nothing; empty where it may change something.
std::string_view why_irrelevant(std::span<const Irrelevant> lists, std::string_view key);

/// Nothing where the key has a counterpart.
const LeftOut* find_left_out(std::span<const LeftOut> keys, std::string_view key);

/// Whether a value changes nothing.
bool is_neutral(const LeftOut& key, std::string_view value);

/// One sentence that names what is not known, the first twenty; nothing where all is known.
void note_unknown(const std::vector<std::string>& unknown, std::vector<std::string>& notes);

/// A sentence for each key of the file that nobody asked for, changes the work and is not null; for one that is nearly
/// one that was asked for; and one for all that are not known. `name_of` is a key's name in the lists.
void note_unread(
    const KeyedFile& file, const KeyLists& lists, std::vector<std::string>& notes,
    std::string_view (*name_of)(std::string_view key) = [](std::string_view key) { return key; });

}  // namespace commfuse::import
