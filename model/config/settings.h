// SPDX-License-Identifier: Apache-2.0
// The settings of one point: a checked text for every field, and where it was written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/field.h"

namespace commfuse {

/// Places that a value may come from; later ones take precedence.
enum class Source : std::uint8_t { preset, file, environment, set, flag };

struct Origin {
  Source source = Source::preset;
  std::string where;  ///< "a.yaml:3:6", "COMMFUSE_SEQ", "--set seq=8K", "--seq"; empty for a default
};

struct Setting {
  std::string text;  ///< value of its field; empty when left open
  Origin origin;
};

/// Starts with every field at its default. Keys passed to members must exist.
class Settings {
 public:
  Settings();

  [[nodiscard]] const Setting& at(const Field& field) const { return settings_[index_of(field)]; }
  void put(const Field& field, Setting setting) { settings_[index_of(field)] = std::move(setting); }

  [[nodiscard]] const std::string& text(std::string_view key) const;
  /// Returns true if a value is fixed.
  [[nodiscard]] bool has(std::string_view key) const { return !text(key).empty(); }
  /// Returns the value of a count. Requires the count to be fixed.
  [[nodiscard]] std::int64_t count(std::string_view key) const;

 private:
  std::vector<Setting> settings_;
};

/// Returns the settings as typed values (choices.h).
RunChoices choices_of(const Settings& settings);

/// Returns all fields as a run config in YAML; with origins, a comment follows every value.
std::string to_yaml(const Settings& settings, bool origins);
/// Returns only the fields that change a result, with every line indented by `indent` spaces.
std::string point_settings_to_yaml(const Settings& settings, int indent);

/// Returns a plain YAML scalar if the text can be one, else a quoted one.
std::string yaml_scalar(std::string_view text);

}  // namespace commfuse
