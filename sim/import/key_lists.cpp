// SPDX-License-Identifier: Apache-2.0
#include "sim/import/key_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "model/text/suggest.h"

namespace commfuse::import {

namespace {

/// Returns whether `is` holds for any of the space-separated words.
template <class Is>
bool any_word(std::string_view words, const Is& is) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (end > 0 && is(words.substr(0, end))) {
      return true;
    }
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

bool matches(std::string_view pattern, std::string_view key) {
  if (pattern.ends_with('*')) {
    return key.starts_with(pattern.substr(0, pattern.size() - 1));
  }
  return pattern.starts_with('*') ? key.ends_with(pattern.substr(1)) : key == pattern;
}

/// Returns the readable key that `key` probably misspells: it is up to two edits away and missing from the file.
std::optional<std::string> misspelled_key(const KeyedFile& file, std::string_view key) {
  constexpr std::size_t longest = 80;
  constexpr std::size_t shortest = 6;
  if (key.size() > longest || key.size() < shortest) {
    return std::nullopt;
  }
  for (const std::string& requested : file.requested()) {
    const std::size_t difference =
        requested.size() < key.size() ? key.size() - requested.size() : requested.size() - key.size();
    if (difference <= 2 && !file.has(requested) && edit_distance(requested, key) <= 2) {
      return requested;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view why_irrelevant(std::span<const Irrelevant> lists, std::string_view key) {
  const auto match = std::ranges::find_if(lists, [&](const Irrelevant& list) {
    return any_word(list.keys, [&](std::string_view pattern) { return matches(pattern, key); });
  });
  return match == lists.end() ? std::string_view() : match->why;
}

const Unsupported* find_unsupported(std::span<const Unsupported> keys, std::string_view key) {
  const auto match =
      std::ranges::find_if(keys, [&](const Unsupported& unsupported) { return matches(unsupported.key, key); });
  return match == keys.end() ? nullptr : &*match;
}

bool is_neutral(const Unsupported& key, std::string_view value) {
  if (value.empty() || value == "null" || value == "None" || value == "none" || truth_of(value) == false) {
    return truth_of(value) != false || !any_word(key.neutral, [](std::string_view word) { return word == "true"; });
  }
  return any_word(key.neutral,
                  [&](std::string_view word) { return word == value || (word == "true" && truth_of(value) == true); });
}

void note_unknown(const std::vector<std::string>& unknown, std::vector<std::string>& notes) {
  constexpr std::size_t limit = 20;
  if (unknown.empty()) {
    return;
  }
  const std::size_t shown = std::min(unknown.size(), limit);
  notes.push_back(fmt::format("unknown and ignored: {}{}", fmt::join(std::span(unknown).first(shown), ", "),
                              unknown.size() > limit ? fmt::format(" and {} more", unknown.size() - limit) : ""));
}

void note_unread(const KeyedFile& file, const KeyLists& lists, std::vector<std::string>& notes,
                 std::string_view (*name_of)(std::string_view key)) {
  std::vector<std::string> unknown;
  constexpr std::size_t max_compared = 200;  // A hostile file may have a hundred thousand keys.
  for (const auto& [key, entry] : file.entries()) {
    const std::string_view name = name_of(key);
    if (file.is_requested(key) || entry.kind == EntryKind::null) {
      continue;
    }
    if (const Unsupported* const unsupported = find_unsupported(lists.unsupported, name)) {
      if (!is_neutral(*unsupported, entry.text)) {
        notes.push_back(fmt::format("{}: {} = {} has no counterpart and is ignored: {}", entry.where, in_quotes(key),
                                    in_quotes(entry.text), unsupported->instead));
      }
      continue;
    }
    if (!why_irrelevant(lists.irrelevant, name).empty()) {
      continue;
    }
    const std::optional<std::string> meant = unknown.size() < max_compared ? misspelled_key(file, key) : std::nullopt;
    if (meant) {
      notes.push_back(
          fmt::format("{}: {} is unknown and ignored; did you mean '{}'?", entry.where, in_quotes(key), *meant));
    } else {
      unknown.push_back(in_quotes(key));
    }
  }
  note_unknown(unknown, notes);
}

}  // namespace commfuse::import
