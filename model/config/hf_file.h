// SPDX-License-Identifier: Apache-2.0
// A config.json of Hugging Face: its fields by name, which of them somebody asked for, and what is wrong with them.
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

/// Mistakes are collected, and a field in doubt reads as a harmless value, which finish() keeps from getting out.
class HfFile {
 public:
  struct Field {
    std::string key;
    const nlohmann::json* value = nullptr;
  };

  /// Reads JSON as Python writes it: Infinity and NaN are no numbers that say anything, and read as null. Throws
  /// ConfigError where there is no JSON object, and for more than 16 MiB, 32 levels, or a key that is given twice.
  explicit HfFile(std::string path);
  ~HfFile();
  HfFile(const HfFile&) = delete;
  HfFile& operator=(const HfFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

  /// The first of these keys that is there and not null; all that are there count as used. Keys are those of the
  /// language model, wherever it stands in the file; a dot leads into an object ("linear_attn_config.head_dim").
  std::optional<Field> first_of(HfKeys keys);
  [[nodiscard]] bool has(std::string_view key);

  std::int64_t count(HfKeys keys, Range<std::int64_t> range);
  std::optional<std::int64_t> optional_count(HfKeys keys, Range<std::int64_t> range);
  /// A value by layer where the file has a list of them; none where it has one number or nothing.
  std::optional<std::vector<std::int64_t>> optional_counts(HfKeys keys, Range<std::int64_t> range);
  /// Nothing where it is absent or no truth value.
  std::optional<bool> optional_flag(HfKeys keys);
  bool flag(HfKeys keys) { return optional_flag(keys).value_or(false); }
  /// Empty where it is absent or no text.
  std::string word(HfKeys keys);
  /// Texts of a list; empty where there is none.
  std::vector<std::string> words(HfKeys keys);

  /// A key of the file itself, where the language model stands deeper: "model_type", "quantization_config".
  const nlohmann::json* at_top(std::string_view key);

  /// "'hidden_size'", "'text_config.hidden_size'".
  [[nodiscard]] std::string in_file(std::string_view key) const;

  void mistake(std::string_view message);
  void note(std::string message) { notes_.push_back(std::move(message)); }
  [[nodiscard]] bool is_right() const { return mistakes_.empty(); }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  /// Keys that nobody asked for, in the file's words and order: "text_config.new_thing".
  [[nodiscard]] std::vector<std::string> unasked() const;
  /// The object that has such a vision or audio tower; empty where there is none.
  [[nodiscard]] std::string_view wrapper() const { return wrapper_; }

  /// Throws ConfigError with all mistakes.
  void finish() const;

 private:
  std::string path_;
  std::unique_ptr<nlohmann::json> top_;
  const nlohmann::json* shape_ = nullptr;  ///< top_, or the object in it that has the language model.
  std::string wrapper_;                    ///< Its key.
  std::set<std::string, std::less<>> asked_;
  std::set<std::string, std::less<>> asked_at_top_;
  std::vector<std::string> mistakes_;
  std::vector<std::string> notes_;
};

}  // namespace commfuse
