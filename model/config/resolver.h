// SPDX-License-Identifier: Apache-2.0
// Resolves files, the environment and the command line to settings. Every value is checked where it was written, even
// one that is overridden, and all mistakes are reported together.
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
  /// Accepts the former names in `renames`, and warns about each that is used.
  explicit Resolver(const Renames& renames = program_renames()) : renames_(&renames) {}

  /// Reads a run config: nested or dotted keys, optionally with `schema: commfuse.run/1`. Relative paths in the file
  /// start at its folder.
  void read_file(const std::string& path);
  /// Reads the settings in one map of a file. Mistakes are noted in `file`, not in this object.
  void read_map(YamlFile& file, const YamlValue& map);
  /// Reads variables of the form "NAME=value"; only COMMFUSE_* count, and empty ones count as unset.
  void read_environment(std::span<const std::string> variables);
  /// Reads an assignment such as "strategy.slices=4".
  void read_set(std::string_view assignment);
  void read_flag(const Field& field, std::string_view text);

  /// Notes a mistake from another reader. The message is ready to print and may have several lines.
  void mistake(const std::string& message) { mistakes_.push_back(message); }
  /// Returns the setting with this key or former key; a former key leaves a warning that names `where`. Returns null
  /// for an unknown key, and for a former key that is no longer accepted, with the reason in `refused`.
  const Field* field_of_key(std::string_view key, std::string_view where, std::string& refused);
  /// Runs `read`; its ConfigError is noted like any other mistake.
  void noting(const std::function<void()>& read);

  [[nodiscard]] const Settings& settings() const { return settings_; }
  /// Returns each warning once, in order. finish() escapes control characters when it prints them.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
  /// Prints the warnings on stderr. Throws ConfigError with every mistake, one per line, if there is any.
  Settings finish();

 private:
  void warn(std::string sentence);
  void put(const Field& field, std::string_view text, Origin origin);

  const Renames* renames_;
  Settings settings_;
  std::vector<std::string> mistakes_;
  std::vector<std::string> warnings_;
};

/// Returns the environment variables of this process.
std::vector<std::string> environment();

/// Returns a field's value from a file after checking it; notes the mistake and returns nullopt when it is wrong.
std::optional<Setting> read_setting(YamlFile& file, const Field& field, const YamlValue& value);
/// Works like the overload above for a string at `place`.
std::optional<Setting> read_setting(YamlFile& file, const Field& field, std::string_view text, const YamlValue& place);

}  // namespace commfuse
