// SPDX-License-Identifier: Apache-2.0
// commfuse-sim config: prints the settings, where they come from, and what each one means.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "model/config/command_line.h"
#include "model/config/meant.h"
#include "model/config/option_marks.h"
#include "model/config/plan_field.h"
#include "model/config_error.h"
#include "model/text/suggest.h"
#include "model/wrapped.h"
#include "sim/commands/commands.h"
#include "sim/commands/setting_flags.h"

namespace commfuse::sim {

namespace {

struct ConfigRequest {
  SettingArguments settings;
  bool origin = false;
};

void show_config(const ConfigRequest& request) {
  Resolver resolver;
  read_files(request.settings, resolver);
  read_above_files(request.settings, resolver);
  fmt::print("schema: commfuse.run/1\n{}", to_yaml(resolver.finish(), request.origin));
}

std::string flags_of(const Field& field) {
  return field.letter == '\0' ? fmt::format("--{}", field.flag) : fmt::format("--{}, -{}", field.flag, field.letter);
}

/// Returns the setting as it is written in a file: "strategy: {slices: 4}".
std::string in_a_file(const Field& field) {
  const std::size_t dot = field.key.find('.');
  const std::string value = yaml_scalar(field.example);
  return dot == std::string_view::npos
             ? fmt::format("{}: {}", field.key, value)
             : fmt::format("{}: {{{}: {}}}", field.key.substr(0, dot), field.key.substr(dot + 1), value);
}

/// Returns a key with its doc, possible values and default, wrapped to the width of the terminal.
std::string described(std::string_view key, std::string_view doc, std::string_view values, std::string_view preset) {
  const std::string below(15, ' ');
  return fmt::format("{}\n{}\n{}{}", key, wrapped(doc, "  ", "  "), wrapped(values, "  value        ", below),
                     wrapped(preset, "  default      ", below));
}

std::string explanation(const Field& field) {
  const std::string_view preset = field.preset.empty() ? "left open" : field.preset;
  return described(field.key, field.doc, values_in_words(field), preset) +
         fmt::format("  in a file    {}\n  flag         {}\n  variable     {}\n  --set        {}={}\n{}",
                     in_a_file(field), flags_of(field), variable_of(field), field.key, field.example,
                     field.of_point ? fmt::format("  --axis       {}={}\n", field.key, field.example) : "");
}

std::string explanation(const PlanField& field) {
  const std::string_view preset = field.required                   ? "none: the key is required"
                                  : !field.preset.empty()          ? field.preset
                                  : !field.computed_preset.empty() ? field.computed_preset
                                                                   : "none";
  const std::string_view name = field.key.substr(field.key.rfind('.') + 1);
  return described(fmt::format("plan.{}", field.key), field.doc, values_in_words(field), preset) +
         fmt::format("  in a file    {}: {}\n", name, yaml_scalar(field.example));
}

/// Prints a key in a column of `width` characters, then its text, wrapped to the width of the terminal.
void print_listed(std::string_view key, std::string_view text, std::size_t width) {
  fmt::print("{}", wrapped(text, fmt::format("{:<{}} ", key, width), std::string(width + 1, ' ')));
}

/// Explains a key of plan files, or lists the keys below it. `key` lacks the prefix "plan.". Returns false if the key
/// is unknown.
bool explain_plan(std::string_view key) {
  if (const PlanField* field = find_plan_field(key)) {
    fmt::print("{}", explanation(*field));
    return true;
  }
  bool has_printed = false;
  for (const PlanField& field : plan_fields()) {
    if (key.empty() || field.key.starts_with(fmt::format("{}.", key))) {
      print_listed(fmt::format("plan.{}", field.key), field.doc, 32);
      has_printed = true;
    }
  }
  return has_printed;
}

/// Returns the remedy for an unknown key. `key` and the keys in the remedy begin with "plan.".
std::string remedy_for_plan_key(std::string_view key) {
  std::vector<std::string> names;
  for (const PlanField& field : plan_fields()) {
    names.push_back(fmt::format("plan.{}", field.key));
  }
  const std::vector<std::string_view> keys(names.begin(), names.end());
  return remedy_for(key, keys, "keys of a plan");
}

void explain(const std::string& key) {
  if (key == "plan" || key.starts_with("plan.")) {
    const std::string plan_key = key.substr(std::min<std::size_t>(key.size(), 5));
    if (!explain_plan(plan_key)) {
      throw ConfigError(fmt::format("unknown key {} of a plan; {}", in_quotes(key), remedy_for_plan_key(key)));
    }
    return;
  }
  if (const Field* field = field_meant(key)) {
    fmt::print("{}", explanation(*field));
    return;
  }
  bool has_printed = false;
  for (const Field& field : run_fields()) {
    if (key.empty() || field.key.substr(0, key.size() + 1) == key + ".") {
      print_listed(field.key, field.doc, 20);
      has_printed = true;
    }
  }
  if (!has_printed) {
    throw ConfigError(fmt::format("unknown setting {}; {}", in_quotes(key), remedy_for_key(key)));
  }
}

std::vector<std::string_view> explained_keys() {
  std::vector<std::string_view> keys{"plan"};
  for (const Field& field : run_fields()) {
    keys.push_back(field.key);
  }
  return keys;
}

void add_show(CLI::App& config, int& status) {
  add_verb(config, "show", "Print the settings of a run as a config file", [&status](CLI::App& command) {
    const auto request = std::make_shared<ConfigRequest>();
    add_setting_flags(command, request->settings);
    usual(command.add_flag("--origin", request->origin, "Show the origin of each setting"));
    command.footer(
        "Precedence, lowest first: defaults, --config files in order, COMMFUSE_*\n"
        "variables, --set, flags.\n"
        "\n"
        "Examples:\n"
        "  commfuse-sim config show --config mine.yaml --seq 8K --origin\n"
        "  commfuse-sim config show --seq 8K > mine.yaml");
    command.callback([request, &status] {
      show_config(*request);
      status = 0;
    });
  });
}

void add_explain(CLI::App& config, int& status) {
  add_verb(
      config, "explain", "Explain a setting and its values; without KEY, list all settings",
      [&status](CLI::App& command) {
        const auto key = std::make_shared<std::string>();
        offers_words(
            command.add_option(
                "KEY", *key, "Setting, for example strategy.slices; or a key of plan files, for example plan.deadline"),
            explained_keys());
        command.footer("Example:\n  commfuse-sim config explain strategy.slices");
        command.callback([key, &status] {
          explain(*key);
          status = 0;
        });
      });
}

}  // namespace

void add_config(CLI::App& app, int& status) {
  add_verb(app, "config", "Show or explain settings", [&status](CLI::App& config) {
    config.require_subcommand(1);
    add_show(config, status);
    add_explain(config, status);
  });
}

}  // namespace commfuse::sim
