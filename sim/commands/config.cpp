// SPDX-License-Identifier: Apache-2.0
// commfuse-sim config: what the settings are, where they come from, and what each one means.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "model/config/command_line.h"
#include "model/config/suggest.h"
#include "model/config_error.h"
#include "sim/commands/commands.h"
#include "sim/commands/setting_flags.h"

namespace commfuse::sim {

namespace {

struct ShowRequest {
  SettingArguments settings;
  bool origin = false;
};

void show(const ShowRequest& request) {
  Resolver resolver;
  read_files(request.settings, resolver);
  read_above_files(request.settings, resolver);
  fmt::print("schema: commfuse.run/1\n{}", to_yaml(resolver.finish(), request.origin));
}

std::string flags_of(const Field& field) {
  return field.letter == '\0' ? fmt::format("--{}", field.flag) : fmt::format("--{}, -{}", field.flag, field.letter);
}

/// "strategy: {slices: 4}".
std::string in_a_file(const Field& field) {
  const std::size_t dot = field.key.find('.');
  const std::string value = yaml_scalar(field.example);
  return dot == std::string_view::npos
             ? fmt::format("{}: {}", field.key, value)
             : fmt::format("{}: {{{}: {}}}", field.key.substr(0, dot), field.key.substr(dot + 1), value);
}

std::string explanation(const Field& field) {
  const std::string preset = field.preset.empty() ? "left open" : std::string(field.preset);
  return fmt::format(
      "{}\n  {}\n\n"
      "  value        {}\n  default      {}\n  in a file    {}\n  flag         {}\n  variable     {}\n"
      "  --set        {}={}\n{}",
      field.key, field.doc, values_in_words(field), preset, in_a_file(field), flags_of(field), variable_of(field),
      field.key, field.example, field.of_point ? fmt::format("  --axis       {}={}\n", field.key, field.example) : "");
}

void explain(const std::string& key) {
  if (const Field* field = find_field(key)) {
    fmt::print("{}", explanation(*field));
    return;
  }
  bool any = false;
  for (const Field& field : run_fields()) {
    if (key.empty() || field.key.substr(0, key.size() + 1) == key + ".") {
      fmt::print("{:<20} {}\n", field.key, field.doc);
      any = true;
    }
  }
  if (!any) {
    throw ConfigError(fmt::format("unknown setting {}; {}", in_quotes(key), remedy_for_key(key)));
  }
}

void add_show(CLI::App& config, int& status) {
  add_verb(config, "show", "Print the settings a run would have, as a config file", [&status](CLI::App& command) {
    const auto request = std::make_shared<ShowRequest>();
    add_setting_flags(command, request->settings);
    command.add_flag("--origin", request->origin, "Say where each came from");
    command.footer(
        "Defaults < --config files in their order < COMMFUSE_* variables < --set < flags.\n\n"
        "Examples:\n"
        "  commfuse-sim config show --config mine.yaml --seq 8K --origin\n"
        "  commfuse-sim config show --seq 8K > mine.yaml");
    command.callback([request, &status] {
      show(*request);
      status = 0;
    });
  });
}

void add_explain(CLI::App& config, int& status) {
  CLI::App* command = config.add_subcommand("explain", "Say what a setting means and takes; without KEY, list them");
  const auto key = std::make_shared<std::string>();
  command->add_option("KEY", *key, "As in strategy.slices");
  command->footer("Example:\n  commfuse-sim config explain strategy.slices");
  command->callback([key, &status] {
    explain(*key);
    status = 0;
  });
}

}  // namespace

void add_config(CLI::App& app, int& status) {
  add_verb(app, "config", "Look at settings: show, explain", [&status](CLI::App& config) {
    config.require_subcommand(1);
    add_show(config, status);
    add_explain(config, status);
  });
}

}  // namespace commfuse::sim
