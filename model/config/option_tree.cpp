// SPDX-License-Identifier: Apache-2.0
#include "model/config/option_tree.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "model/config/command_line.h"
#include "model/config_error.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

/// What help writes behind the names, without CLI11's own words.
std::string value_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) {
    return "";
  }
  std::string value = option.get_type_name();
  value = value.substr(0, value.find(':'));  // behind it are checks
  return option.get_default_str().empty() ? value : fmt::format("{}={}", value, option.get_default_str());
}

OptionEntry entry_of(const CLI::Option& option) {
  OptionEntry entry;
  for (const std::string& name : option.get_snames()) {
    entry.names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    entry.names.push_back("--" + name);
  }
  entry.by_place = entry.names.empty();
  if (entry.by_place) {
    entry.names.push_back(option.get_name(true));
  } else {
    entry.value = value_of(option);
  }
  entry.doc = option.get_description();
  std::replace(entry.doc.begin(), entry.doc.end(), '\n', ' ');
  return entry;
}

/// As if help on it were asked for, which adds its flags.
void fill(CLI::App& program, const std::vector<std::string>& path) {
  std::vector<std::string> words{"--help"};  // CLI11 takes them from the last to the first
  words.insert(words.end(), path.rbegin(), path.rend() - 1);
  try {
    program.parse(words);
  } catch (const CLI::Success&) {
  }
}

CommandEntry entry_of(CLI::App& program, CLI::App& app, std::vector<std::string> path) {
  fill(program, path);
  CommandEntry entry{.path = std::move(path), .doc = app.get_description(), .footer = app.get_footer()};
  if (entry.doc.ends_with('.')) {
    entry.doc.pop_back();
  }
  for (const CLI::Option* option : app.get_options()) {
    entry.options.push_back(entry_of(*option));
  }
  for (CLI::App* verb : app.get_subcommands({})) {
    std::vector<std::string> below = entry.path;
    below.push_back(verb->get_name());
    entry.commands.push_back(entry_of(program, *verb, std::move(below)));
  }
  return entry;
}

}  // namespace

CommandEntry option_tree(CLI::App& app) { return entry_of(app, app, {app.get_name()}); }

void add_pages(CLI::App& app, int& status, const std::vector<std::string>& forms,
               std::function<std::string(const CommandEntry& program, const std::string& form)> render) {
  const auto chosen = std::make_shared<std::string>();
  add_verb(
      app, "pages", "Print the manual page, shell completions or reference",
      [&app, &status, chosen, forms, render = std::move(render)](CLI::App& verb) {
        verb.add_option("FORM", *chosen, fmt::format("{}", fmt::join(forms, ", ")))->required();
        verb.footer("Examples:\n  " + app.get_name() + " pages man | man -l -\n  source <(" + app.get_name() +
                    " pages bash)");
        verb.callback([&app, &status, chosen, forms, render] {
          const std::string form = *chosen;  // reading the tree parses anew
          if (std::find(forms.begin(), forms.end(), form) == forms.end()) {
            const std::vector<std::string_view> known(forms.begin(), forms.end());
            throw ConfigError(fmt::format("unknown form {}; {}", in_quotes(form), remedy_for(form, known, "forms")));
          }
          fmt::print("{}", render(option_tree(app), form));
          status = exit_code::done;
        });
      });
}

}  // namespace commfuse
