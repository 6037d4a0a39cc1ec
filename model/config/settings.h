// SPDX-License-Identifier: Apache-2.0
// The settings of one point: a checked text for every field, and where it was written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/field.h"

namespace commfuse {

/// Later ones take precedence.
enum class Source : std::uint8_t { preset, file, environment, set, flag };

struct Origin {
  Source source = Source::preset;
  std::string where;  ///< "a.yaml:3:6", "COMMFUSE_SEQ", "--set seq=8K", "--seq"; empty for a default
};

struct Setting {
  std::string text;  ///< A value of its field; empty: left open.
  Origin origin;
};

/// Starts with every field at its default. Keys that are asked for must exist.
class Settings {
 public:
  Settings();

  [[nodiscard]] const Setting& at(const Field& field) const { return all_[index_of(field)]; }
  void put(const Field& field, Setting setting) { all_[index_of(field)] = std::move(setting); }

  [[nodiscard]] const std::string& text(std::string_view key) const;
  /// Whether a value is fixed.
  [[nodiscard]] bool has(std::string_view key) const { return !text(key).empty(); }
  /// Of a count with a value.
  [[nodiscard]] std::int64_t count(std::string_view key) const;

 private:
  std::vector<Setting> all_;
};

/// Returns the settings as typed values (choices.h).
RunChoices choices_of(const Settings& settings);

/// What every field is, as a run config in YAML; with origins, a comment behind every value.
std::string to_yaml(const Settings& settings, bool origins);
/// The same without what changes no result, every line `indent` spaces in.
std::string point_settings_to_yaml(const Settings& settings, int indent);

/// A plain YAML scalar where it can be one, else in quotes.
std::string yaml_scalar(std::string_view text);

}  // namespace commfuse
