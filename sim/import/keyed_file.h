// SPDX-License-Identifier: Apache-2.0
// What a TOML, JSON or YAML file says, by dotted key ("training.seq_len"), with places, and which keys were asked for.
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
  scalar,  ///< Of YAML: the reader decides which of these it is.
  list,
  map  ///< Without a key.
};

struct Entry {
  std::string key;
  EntryKind kind = EntryKind::null;
  std::string text;                ///< As written; of a list, its items between commas.
  std::vector<std::string> items;  ///< Of a list: those that are neither lists nor maps.
  std::string where;               ///< "train.toml:3:1", or "model.num_layers=2" of a command line.
};

class KeyedFile {
 public:
  explicit KeyedFile(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] const std::string& path() const { return path_; }

  /// Takes the place of an entry of that key.
  void put(Entry entry);
  /// Forgets a key and those below it.
  void remove(std::string_view key);

  /// The entry of a key, also one that is null; nullptr where there is none. Counts as asked for.
  const Entry* find(std::string_view key);
  /// The entry that is not null; all of them count as asked for. Throws ConfigError where two of them differ.
  const Entry* first_of(std::initializer_list<std::string_view> keys);
  /// Whether there is that key, or one below it.
  [[nodiscard]] bool has(std::string_view key) const;

  /// These throw ConfigError (`path:line:col: key is ...; remedy`) where the entry is no such value.
  static std::int64_t count(const Entry& entry, Range<std::int64_t> range);
  static bool flag(const Entry& entry);

  /// The same of the first of `keys`, nothing where there is none.
  std::optional<std::int64_t> count(std::initializer_list<std::string_view> keys, Range<std::int64_t> range);
  bool flag(std::initializer_list<std::string_view> keys, bool otherwise = false);
  std::optional<std::string> word(std::initializer_list<std::string_view> keys);

  [[noreturn]] static void wrong(const Entry& entry, std::string_view sentence);

  /// All, by key.
  [[nodiscard]] const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  [[nodiscard]] bool is_asked(std::string_view key) const { return asked_.contains(key); }
  /// Keys that readers asked for, also those that the file has not.
  [[nodiscard]] const std::set<std::string, std::less<>>& asked() const { return asked_; }

 private:
  std::string path_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::set<std::string, std::less<>> asked_;
};

/// Each reads a file of at most 1 MiB whose nests are at most 32 deep. Throws ConfigError (`path:line:col: sentence;
/// remedy`) where it is none, or has a key twice.
KeyedFile read_toml(const std::string& path);
KeyedFile read_json(const std::string& path);  ///< Comments are allowed, as hjson has them.
KeyedFile read_yaml(const std::string& path);

/// Whether YAML, Python or JSON take the word for a truth value, and for which.
std::optional<bool> truth_of(std::string_view word);

/// The remedy for a number that is not in range.
std::string whole_number_in(Range<std::int64_t> range, bool is_too_large);

}  // namespace commfuse::import
