// SPDX-License-Identifier: Apache-2.0
// The entries of a TOML, JSON or YAML file by dotted key ("training.seq_len"), with the place of each entry and a
// record of the keys that were read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/yaml_reader.h"

namespace commfuse::import {

enum class EntryKind : std::uint8_t {
  null,
  boolean,
  number,
  text,
  scalar,  ///< any YAML scalar; the method that reads it decides on the type
  list,
  map  ///< an empty map
};

struct Entry {
  std::string key;
  EntryKind kind = EntryKind::null;
  std::string text;                ///< Text as written; for a list, the items separated by commas.
  std::vector<std::string> items;  ///< Items of a list except lists and maps; in JSON, also items nested in these.
  std::string where;               ///< "train.toml:3:1", or "model.num_layers=2" for a command line.
};

class KeyedFile {
 public:
  explicit KeyedFile(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] const std::string& path() const { return path_; }

  /// Adds an entry, or replaces the entry with the same key. Throws ConfigError if the key is longer than 1000
  /// characters.
  void put(Entry entry);
  /// Removes a key and the keys below it.
  void remove(std::string_view key);

  /// Returns the entry of a key, or nullptr if the key is missing; an entry may be null. Records the key as read.
  const Entry* find(std::string_view key);
  /// Returns the first of these entries that is not null, or nullptr. Records all keys as read. Throws ConfigError if
  /// two entries differ.
  const Entry* first_of(std::initializer_list<std::string_view> keys);
  /// Returns whether the file has the key, or a key below it.
  [[nodiscard]] bool has(std::string_view key) const;

  /// These throw ConfigError (`path:line:col: key is ...; remedy`) if the entry has another type or is out of range.
  static std::int64_t count(const Entry& entry, Range<std::int64_t> range);
  static bool flag(const Entry& entry);

  /// These read the first of `keys` whose entry is not null. Without such an entry they return nothing, or `otherwise`.
  std::optional<std::int64_t> count(std::initializer_list<std::string_view> keys, Range<std::int64_t> range);
  bool flag(std::initializer_list<std::string_view> keys, bool otherwise = false);
  std::optional<std::string> word(std::initializer_list<std::string_view> keys);

  [[noreturn]] static void wrong(const Entry& entry, std::string_view sentence);

  /// Returns all entries by key.
  [[nodiscard]] const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  [[nodiscard]] bool is_requested(std::string_view key) const { return requested_.contains(key); }
  /// Returns the keys that readers requested, including keys that the file lacks.
  [[nodiscard]] const std::set<std::string, std::less<>>& requested() const { return requested_; }

 private:
  std::string path_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::set<std::string, std::less<>> requested_;
};

/// Each reads a file of up to 1 MiB and 32 levels, and throws ConfigError (`path:line:col: sentence; remedy`) if the
/// file has another format or has a key twice.
KeyedFile read_toml(const std::string& path);
KeyedFile read_json(const std::string& path);  ///< Comments are allowed, as in hjson.
KeyedFile read_yaml(const std::string& path);

/// Returns the boolean that the word means in YAML, Python or JSON; nothing for other words.
std::optional<bool> truth_of(std::string_view word);

/// Returns the remedy for a number that is out of range.
std::string whole_number_in(Range<std::int64_t> range, bool is_too_large);

}  // namespace commfuse::import
