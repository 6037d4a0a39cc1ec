// SPDX-License-Identifier: Apache-2.0
// From files, the environment and the command line to settings: every value is checked where it was written, also one
// that is overridden, and all mistakes are told at once.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/renames.h"
#include "model/config/settings.h"
#include "model/config/yaml_reader.h"

namespace commfuse {

/// Call the readers in rising precedence: files, environment, --set, flags.
class Resolver {
 public:
  /// The former names that are taken; a warning of each that is used.
  explicit Resolver(const Renames& renames = program_renames()) : renames_(&renames) {}

  /// A run config: nested keys or dotted ones, `schema: commfuse.run/1` if any. Paths in it start at its folder.
  void read_file(const std::string& path);
  /// The settings in one map of a file; mistakes stay with the file.
  void read_map(YamlFile& file, const YamlValue& map);
  /// "NAME=value"; only COMMFUSE_* are looked at, empty ones count as unset.
  void read_environment(std::span<const std::string> variables);
  /// "strategy.slices=4".
  void read_set(std::string_view assignment);
  void read_flag(const Field& field, std::string_view text);

  /// Notes a mistake of someone else's part: ready to print, perhaps several lines.
  void mistake(const std::string& message) { mistakes_.push_back(message); }
  /// The setting of a key at `where`, also by its former name, which leaves a warning. Null where there is none, and
  /// also for a former name that is no longer taken: `refused` says so then.
  const Field* field_of_key(std::string_view key, std::string_view where, std::string& refused);
  /// Runs `read`; a ConfigError of it is a mistake like any other.
  void noting(const std::function<void()>& read);

  [[nodiscard]] const Settings& settings() const { return settings_; }
  /// Each once, in order: ready to print.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
  /// Prints the warnings on stderr. Throws ConfigError with every mistake, one a line.
  Settings finish();

 private:
  void warn(std::string sentence);
  void put(const Field& field, std::string_view text, Origin origin);

  const Renames* renames_;
  Settings settings_;
  std::vector<std::string> mistakes_;
  std::vector<std::string> warnings_;
};

/// The variables of this process.
std::vector<std::string> environment();

/// The value a field has in a file: a checked text, or nothing, and its mistake is noted.
std::optional<Setting> read_setting(YamlFile& file, const Field& field, const YamlValue& value);
/// The same for text from a place of its own.
std::optional<Setting> read_setting(YamlFile& file, const Field& field, std::string_view text, const YamlValue& place);

}  // namespace commfuse
