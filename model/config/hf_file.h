// SPDX-License-Identifier: Apache-2.0
// Reads a config.json of Hugging Face: gives its fields by name, records the requested keys, and collects mistakes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/yaml_reader.h"

namespace commfuse {

using HfKeys = std::initializer_list<std::string_view>;

/// Collects mistakes. A wrong field reads as a harmless value, and finish() throws before anyone uses this value.
class HfFile {
 public:
  struct Field {
    std::string key;
    const nlohmann::json* value = nullptr;
  };

  /// Reads JSON as Python writes it; the infinities read as null and NaN as 0, because they carry no information.
  /// Throws ConfigError when the file has no JSON object, more than 16 MiB or 32 levels, or a duplicate key.
  explicit HfFile(std::string path);
  ~HfFile();
  HfFile(const HfFile&) = delete;
  HfFile& operator=(const HfFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

  /// Returns the first of these keys that exists and is not null; all existing ones count as used. Keys belong to the
  /// language model, wherever the file keeps it; a key with a dot is a key of an inner object
  /// ("linear_attn_config.head_dim").
  std::optional<Field> first_of(HfKeys keys);
  [[nodiscard]] bool has(std::string_view key);

  std::int64_t count(HfKeys keys, Range<std::int64_t> range);
  std::optional<std::int64_t> optional_count(HfKeys keys, Range<std::int64_t> range);
  /// Returns one value per layer if the file has a list; nullopt if it has one number or nothing. A list with a wrong
  /// item is a mistake and reads as empty.
  std::optional<std::vector<std::int64_t>> optional_counts(HfKeys keys, Range<std::int64_t> range);
  /// Returns nullopt when the key is absent or not a boolean.
  std::optional<bool> optional_flag(HfKeys keys);
  bool flag(HfKeys keys) { return optional_flag(keys).value_or(false); }
  /// Returns an empty string when the key is absent or not a string.
  std::string word(HfKeys keys);
  /// Returns the items of a list, an empty string for each item that is not a string; an empty list when the key is
  /// absent or not a list.
  std::vector<std::string> words(HfKeys keys);

  /// Returns the value of a key at the file's top level, for files that nest the language model: "model_type",
  /// "quantization_config".
  const nlohmann::json* at_top(std::string_view key);

  /// Returns the quoted full name of a key: "'hidden_size'", "'text_config.hidden_size'".
  [[nodiscard]] std::string in_file(std::string_view key) const;

  void mistake(std::string_view message);
  void note(std::string message) { notes_.push_back(std::move(message)); }
  [[nodiscard]] bool is_right() const { return mistakes_.empty(); }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  /// Returns the keys that no reader requested, as the file names them ("text_config.new_thing"): those of a nested
  /// language model first, each group in alphabetical order.
  [[nodiscard]] std::vector<std::string> unrequested() const;
  /// Returns the key under which a file with a vision or audio tower keeps the language model; empty in other files.
  [[nodiscard]] std::string_view wrapper() const { return wrapper_; }

  /// Throws ConfigError with all mistakes, if any.
  void finish() const;

 private:
  std::string path_;
  std::unique_ptr<nlohmann::json> top_;
  const nlohmann::json* shape_ = nullptr;  ///< top_, or the object in it that holds the language model
  std::string wrapper_;                    ///< key of shape_; empty for top_
  std::set<std::string, std::less<>> requested_;
  std::set<std::string, std::less<>> requested_at_top_;
  std::vector<std::string> mistakes_;
  std::vector<std::string> notes_;
};

}  // namespace commfuse
