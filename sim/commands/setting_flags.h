// SPDX-License-Identifier: Apache-2.0
// The flags for settings, which are generated from the registry of settings, and the texts that the user gives.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/resolver.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace commfuse::sim {

struct SettingArguments {
  std::vector<std::string> files;                           // --config
  std::vector<std::string> sets;                            // --set
  std::vector<std::pair<const Field*, std::string>> flags;  // At most one per setting.
  std::vector<std::string> axes;                            // --axis
};

/// Adds the flag of one setting. For this and the following functions, the arguments must outlive the parsing.
CLI::Option* add_setting_flag(CLI::App& command, const Field& field, SettingArguments& arguments);
/// Adds a flag for each field for which `wanted` returns true, or for all fields if `wanted` is null.
void add_setting_flags(CLI::App& command, SettingArguments& arguments, bool (*wanted)(const Field&) = nullptr);
void add_axis_flag(CLI::App& command, SettingArguments& arguments);

void read_files(const SettingArguments& arguments, Resolver& resolver);
/// Reads the sources that take precedence over files: environment, --set, flags.
void read_above_files(const SettingArguments& arguments, Resolver& resolver);

/// Returns every file that the arguments name, by --config and in settings.
std::vector<std::string> files_named(const SettingArguments& arguments);

/// Resolves files, environment, --set and flags. Throws ConfigError with every mistake.
Settings settings_of(const SettingArguments& arguments);
/// Returns the settings for a run of their scope, without environment variables that it cannot use; each is noted on
/// stderr.
Settings settings_of_run(const SettingArguments& arguments);

/// Throws ConfigError unless `word` is among `known`.
void require_word(std::string_view flag, std::string_view word, std::span<const std::string_view> known,
                  std::string_view noun);

}  // namespace commfuse::sim
