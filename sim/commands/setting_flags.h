// SPDX-License-Identifier: Apache-2.0
// Adds the flags for settings, generated from the registry of settings, and reads the arguments that the user gives.
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

/// Adds the flag of one setting. In all functions that add flags, `arguments` must outlive the parsing.
CLI::Option* add_setting_flag(CLI::App& command, const Field& field, SettingArguments& arguments);
/// Adds --config, --set, and a flag for each field for which `wanted` returns true, or for all fields if `wanted` is
/// null. With `wanted`, --scope offers only the scopes of layers, because no command with `wanted` and --scope
/// simulates whole models.
void add_setting_flags(CLI::App& command, SettingArguments& arguments, bool (*wanted)(const Field&) = nullptr);
void add_axis_flag(CLI::App& command, SettingArguments& arguments);

void read_files(const SettingArguments& arguments, Resolver& resolver);
/// Reads the sources that take precedence over files: environment, --set, flags.
void read_above_files(const SettingArguments& arguments, Resolver& resolver);

/// Returns the files of --config and every value in settings and axes that may be a path, because it has a dot or a
/// slash.
std::vector<std::string> files_named(const SettingArguments& arguments);

/// Resolves files, environment, --set and flags. Throws ConfigError with every mistake.
Settings settings_of(const SettingArguments& arguments);
/// Resolves the settings of a run. Ignores environment variables that the run cannot use, and notes each on stderr.
Settings settings_of_run(const SettingArguments& arguments);

/// Throws ConfigError unless `word` is among `known`.
void require_word(std::string_view flag, std::string_view word, std::span<const std::string_view> known,
                  std::string_view noun);

}  // namespace commfuse::sim
