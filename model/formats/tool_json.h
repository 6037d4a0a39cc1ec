// SPDX-License-Identifier: Apache-2.0
// Reads JSON that another program printed, perhaps after a few lines of text. Nothing is dropped silently: a key that
// no reader uses becomes a note.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace commfuse {

/// Sentences about unused contents; keeps up to 100 sentences and counts the rest.
class ReadingNotes {
 public:
  void add(std::string sentence);
  [[nodiscard]] std::vector<std::string> take();

 private:
  std::vector<std::string> notes_;
  std::size_t omitted_ = 0;
};

/// A value and its place: "testcases[3].sum".
struct ToolValue {
  const nlohmann::json& json;
  const std::string& path;  ///< The file's path.
  std::string place;

  /// Throws ConfigError "path: place: sentence".
  [[noreturn]] void refuse(std::string_view sentence) const;
  /// Returns nullopt if the object does not have the key. Requires `json` to be an object.
  [[nodiscard]] std::optional<ToolValue> find(const char* key) const;
  /// The following functions throw ConfigError for a value of another kind.
  void require_object() const;
  [[nodiscard]] std::vector<ToolValue> items() const;
  [[nodiscard]] std::string text() const;
  /// Returns a whole number from 0 to `largest`.
  [[nodiscard]] std::int64_t whole(std::int64_t largest) const;

  /// Returns the text of a key; empty if the key is missing.
  [[nodiscard]] std::string text_at(const char* key) const;
  /// Notes every key of an object except the known ones.
  void note_others(std::span<const std::string_view> known, ReadingNotes& notes) const;
};

/// Parses the document that begins at the first "{" of a string, and notes the text before it. In messages, `program`
/// names the program that prints such files. Throws ConfigError "path:line:col: sentence; remedy" for a string that is
/// not a JSON object, and for duplicate keys.
nlohmann::json tool_document(std::string_view text, const std::string& path, std::string_view program,
                             ReadingNotes& notes);

}  // namespace commfuse
