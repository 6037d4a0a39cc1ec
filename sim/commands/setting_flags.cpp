// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/setting_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <utility>

#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/stderr_text.h"
#include "model/strategies/scope.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"
#include "sim/point/unused_variables.h"

namespace commfuse::sim {

namespace {

std::string_view type_in_words(const Field& field) {
  switch (field.type) {
    case FieldType::name: return "NAME";
    case FieldType::names: return "NAMES";
    case FieldType::choice: return "WORD";
    case FieldType::choices: return "WORDS";
    case FieldType::count: return "COUNT";
    case FieldType::bandwidth: return "RATE";
    case FieldType::share: return "PERCENT";
    case FieldType::amount: return "NUMBER";
  }
  return "";
}

/// Returns the help of a setting, followed by its possible words unless the help already names them.
std::string help_of(const Field& field) {
  const bool lists =
      field.choices != nullptr && field.doc.find(std::string(field.choices().back())) == std::string_view::npos;
  return lists ? fmt::format("{}: {}", field.doc, fmt::join(field.choices(), ", ")) : std::string(field.doc);
}

/// The parts of a flag that people see: its help, and the words that it offers.
struct Shown {
  std::string help;
  Offer offer;
};

/// Returns what people see of --scope in a command that simulates no whole models.
Shown scopes_of_layers() {
  std::vector<std::string> scopes;
  for (const Scope scope : all_scopes) {
    scopes.emplace_back(name_of(scope));
  }
  return {.help = fmt::format("Site of a layer, or chain of sites: {}", fmt::join(scopes, ", ")),
          .offer = {.kind = OfferKind::words, .words = std::move(scopes)}};
}

CLI::Option* add_flag(CLI::App& command, const Field& field, const Shown& shown, SettingArguments& arguments) {
  const std::string letter = field.letter == '\0' ? "" : fmt::format("-{},", field.letter);
  const auto take = [&arguments, &field](const std::string& text) { arguments.flags.emplace_back(&field, text); };
  CLI::Option* const option =
      command.add_option_function<std::string>(fmt::format("{}--{}", letter, field.flag), take, shown.help)
          ->group(std::string(field.group))
          ->type_name(std::string(type_in_words(field)))
          ->default_str(std::string(field.preset))
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  return offers(field.is_usual ? usual(option) : option, shown.offer);
}

}  // namespace

CLI::Option* add_setting_flag(CLI::App& command, const Field& field, SettingArguments& arguments) {
  return add_flag(command, field, {.help = help_of(field), .offer = offer_of(field)}, arguments);
}

void add_setting_flags(CLI::App& command, SettingArguments& arguments, bool (*wanted)(const Field&)) {
  for (const Field& field : run_fields()) {
    if (wanted != nullptr && field.key == "scope" && wanted(field)) {
      add_flag(command, field, scopes_of_layers(), arguments);
    } else if (wanted == nullptr || wanted(field)) {
      add_setting_flag(command, field, arguments);
    }
  }
  const std::string group = "Settings from elsewhere (commfuse-sim config explain lists them)";
  command.add_option("--config", arguments.files, "YAML file of settings; repeatable, a later file wins")
      ->group(group)
      ->type_name("FILE")
      ->allow_extra_args(false);
  offers(
      command.add_option("--set", arguments.sets, "One setting by its key, for example strategy.slices=4; repeatable")
          ->group(group)
          ->type_name("KEY=VALUE")
          ->allow_extra_args(false),
      {.kind = OfferKind::settings});
}

void add_axis_flag(CLI::App& command, SettingArguments& arguments) {
  CLI::Option* const axis =
      command
          .add_option("--axis", arguments.axes,
                      "Vary a setting: seq=1K..128K doubles, ranks=2,4,8 lists, seq=4K..16K+4K adds; repeatable, first "
                      "is outermost")
          ->group("Grid and output")
          ->type_name("KEY=VALUES")
          ->allow_extra_args(false);
  offers(usual(axis), {.kind = OfferKind::axes});
}

void read_files(const SettingArguments& arguments, Resolver& resolver) {
  for (const std::string& file : arguments.files) {
    resolver.read_file(file);
  }
}

void read_above_files(const SettingArguments& arguments, Resolver& resolver) {
  resolver.read_environment(environment());
  for (const std::string& assignment : arguments.sets) {
    resolver.read_set(assignment);
  }
  for (const auto& [field, text] : arguments.flags) {
    resolver.read_flag(*field, text);
  }
}

std::vector<std::string> files_named(const SettingArguments& arguments) {
  std::vector<std::string> files = arguments.files;
  const auto add = [&](std::string_view values) {
    for (const std::string_view value : split_list(values)) {
      if (value.find_first_of("./") != std::string_view::npos) {
        files.emplace_back(value);
      }
    }
  };
  for (const auto& [field, value] : arguments.flags) {
    add(value);
  }
  for (const std::vector<std::string>* assignments : {&arguments.sets, &arguments.axes}) {
    for (const std::string& assignment : *assignments) {
      add(std::string_view(assignment).substr(assignment.find('=') + 1));
    }
  }
  return files;
}

Settings settings_of(const SettingArguments& arguments) {
  Resolver resolver;
  read_files(arguments, resolver);
  read_above_files(arguments, resolver);
  return resolver.finish();
}

Settings settings_of_run(const SettingArguments& arguments) {
  Settings settings = settings_of(arguments);
  fmt::print(stderr, "{}", for_stderr(ignore_unused_variables(settings)));
  fmt::print(stderr, "{}", for_stderr(notes_on_unused_draws(settings)));
  return settings;
}

void require_word(std::string_view flag, std::string_view word, std::span<const std::string_view> known,
                  std::string_view noun) {
  if (std::find(known.begin(), known.end(), word) == known.end()) {
    const std::string nouns =
        noun.ends_with('y') ? fmt::format("{}ies", noun.substr(0, noun.size() - 1)) : fmt::format("{}s", noun);
    throw ConfigError(
        fmt::format("{}: unknown {} {}; {}", flag, noun, in_quotes(word), remedy_for(word, known, nouns)));
  }
}

}  // namespace commfuse::sim
