// SPDX-License-Identifier: Apache-2.0
#include "sim/import/keyed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"

namespace commfuse::import {

namespace {

bool is_below(std::string_view key, std::string_view parent) {
  return key.size() > parent.size() && key.starts_with(parent) && key[parent.size()] == '.';
}

}  // namespace

std::optional<bool> truth_of(std::string_view word) {
  constexpr std::array<std::string_view, 8> yes{"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On"};
  constexpr std::array<std::string_view, 8> no{"false", "False", "FALSE", "no", "No", "NO", "off", "Off"};
  if (std::ranges::find(yes, word) != yes.end()) {
    return true;
  }
  return std::ranges::find(no, word) != no.end() ? std::optional(false) : std::nullopt;
}

std::string whole_number_in(Range<std::int64_t> range, bool is_too_large) {
  return is_too_large ? fmt::format("write a whole number from {} to {}", range.least, range.most)
                      : fmt::format("write a whole number of at least {}", range.least);
}

void KeyedFile::put(Entry entry) {
  constexpr std::size_t longest_key = 1000;  // Every entry below a map repeats the keys of the maps around it.
  if (entry.key.size() > longest_key) {
    throw ConfigError(
        fmt::format("{}: a key and the keys around it exceed {} characters; shorten them", entry.where, longest_key));
  }
  std::string key = entry.key;
  entries_.insert_or_assign(std::move(key), std::move(entry));
}

void KeyedFile::remove(std::string_view key) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.first == key || is_below(entry.first, key); });
}

const Entry* KeyedFile::find(std::string_view key) {
  requested_.emplace(key);
  const auto entry = entries_.find(key);
  return entry == entries_.end() ? nullptr : &entry->second;
}

const Entry* KeyedFile::first_of(std::initializer_list<std::string_view> keys) {
  const Entry* first = nullptr;
  for (const std::string_view key : keys) {
    const Entry* const entry = find(key);
    if (entry == nullptr || entry->kind == EntryKind::null) {
      continue;
    }
    if (first != nullptr && first->text != entry->text) {
      wrong(*entry, fmt::format("is {}, but {} is {}; keep one of them", in_quotes(entry->text), first->key,
                                in_quotes(first->text)));
    }
    first = first == nullptr ? entry : first;
  }
  return first;
}

bool KeyedFile::has(std::string_view key) const {
  if (entries_.contains(key)) {
    return true;
  }
  const auto next = entries_.lower_bound(fmt::format("{}.", key));
  return next != entries_.end() && is_below(next->first, key);
}

std::int64_t KeyedFile::count(const Entry& entry, Range<std::int64_t> range) {
  const bool has_right_kind = entry.kind == EntryKind::number || entry.kind == EntryKind::scalar;
  const std::optional<std::int64_t> number = has_right_kind ? parse_integer(entry.text) : std::nullopt;
  if (!number || *number < range.least || *number > range.most) {
    wrong(entry,
          fmt::format("is {}; {}", in_quotes(entry.text), whole_number_in(range, number && *number > range.most)));
  }
  return *number;
}

bool KeyedFile::flag(const Entry& entry) {
  const bool has_right_kind = entry.kind == EntryKind::boolean || entry.kind == EntryKind::scalar;
  const std::optional<bool> truth = has_right_kind ? truth_of(entry.text) : std::nullopt;
  if (!truth) {
    wrong(entry, fmt::format("is {}; write true or false", in_quotes(entry.text)));
  }
  return *truth;
}

std::optional<std::int64_t> KeyedFile::count(std::initializer_list<std::string_view> keys, Range<std::int64_t> range) {
  const Entry* const entry = first_of(keys);
  return entry == nullptr ? std::nullopt : std::optional(count(*entry, range));
}

bool KeyedFile::flag(std::initializer_list<std::string_view> keys, bool otherwise) {
  const Entry* const entry = first_of(keys);
  return entry == nullptr ? otherwise : flag(*entry);
}

std::optional<std::string> KeyedFile::word(std::initializer_list<std::string_view> keys) {
  const Entry* const entry = first_of(keys);
  if (entry == nullptr) {
    return std::nullopt;
  }
  if (entry->kind != EntryKind::text && entry->kind != EntryKind::scalar) {
    wrong(*entry, fmt::format("is {}; write a word", in_quotes(entry->text)));
  }
  return entry->text;
}

void KeyedFile::wrong(const Entry& entry, std::string_view sentence) {
  throw ConfigError(fmt::format("{}: {} {}", entry.where, entry.key, sentence));
}

}  // namespace commfuse::import
