// SPDX-License-Identifier: Apache-2.0
// JSON that another program printed, perhaps behind a few lines of text. Nothing in it is dropped in silence: what a
// reader does not use becomes a note.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace commfuse {

/// Sentences about what was not used, at most a hundred.
class ReadingNotes {
 public:
  void add(std::string sentence);
  [[nodiscard]] std::vector<std::string> take();

 private:
  std::vector<std::string> notes_;
  std::size_t left_out_ = 0;
};

/// A value and its place: "testcases[3].sum".
struct ToolValue {
  const nlohmann::json& json;
  const std::string& path;  ///< The file's path.
  std::string place;

  /// Throws ConfigError "path: place: sentence".
  [[noreturn]] void refuse(std::string_view sentence) const;
  /// Null where the object has no such key. Requires an object.
  [[nodiscard]] std::optional<ToolValue> find(const char* key) const;
  /// These throw ConfigError for a value of another kind.
  void require_object() const;
  [[nodiscard]] std::vector<ToolValue> items() const;
  [[nodiscard]] std::string text() const;
  /// From 0 on.
  [[nodiscard]] std::int64_t whole(std::int64_t largest) const;

  /// Text of a key, or empty if it is missing.
  [[nodiscard]] std::string text_at(const char* key) const;
  /// Notes every key of an object except the known ones.
  void note_others(std::span<const std::string_view> known, ReadingNotes& notes) const;
};

/// The document that begins at the first "{" of a text. What stands before it is noted. `program` is what prints such
/// files, for messages. Throws ConfigError "path:line:col: sentence; remedy" for what is no JSON object,
/// and for a key that an object has twice.
nlohmann::json tool_document(std::string_view text, const std::string& path, std::string_view program,
                             ReadingNotes& notes);

}  // namespace commfuse
