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

/// Returns the text that help writes after the names, without CLI11's own words.
std::string value_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) {
    return "";
  }
  std::string value = option.get_type_name();
  value = value.substr(0, value.find(':'));  // checks follow the colon
  return option.get_default_str().empty() ? value : fmt::format("{}={}", value, option.get_default_str());
}

OptionEntry entry_of(CLI::Option& option) {
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
  entry.offer = offer_of(option);
  entry.doc = option.get_description();
  std::replace(entry.doc.begin(), entry.doc.end(), '\n', ' ');
  return entry;
}

CommandEntry entry_of(CLI::App& program, CLI::App& app, std::vector<std::string> path) {
  fill_verb(program, path);
  CommandEntry entry{.path = std::move(path), .doc = app.get_description(), .footer = app.get_footer()};
  if (entry.doc.ends_with('.')) {
    entry.doc.pop_back();
  }
  for (CLI::Option* option : app.get_options({})) {
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

namespace {

struct PagesRequest {
  std::string format;
  std::string list;
};

/// Format that completion scripts request: a list whose words may have changed since the script was generated.
constexpr std::string_view names_format = "names";

using RenderTree = std::function<std::string(const CommandEntry& program, const std::string& format)>;

void print_page(CLI::App& app, const PagesRequest& request, const std::vector<std::string>& formats,
                const RenderTree& render) {
  if (request.format == names_format) {
    fmt::print("{}", completion_list(request.list));
    return;
  }
  if (std::find(formats.begin(), formats.end(), request.format) == formats.end()) {
    const std::vector<std::string_view> known(formats.begin(), formats.end());
    throw ConfigError(
        fmt::format("unknown format {}; {}", in_quotes(request.format), remedy_for(request.format, known, "formats")));
  }
  if (!request.list.empty()) {
    throw ConfigError(fmt::format("LIST: {} takes no list; remove {}", request.format, in_quotes(request.list)));
  }
  fmt::print("{}", render(option_tree(app), request.format));
}

}  // namespace

void add_pages(CLI::App& app, int& status, std::vector<std::string> formats, RenderTree render) {
  const auto request = std::make_shared<PagesRequest>();
  add_verb(app, "pages", "Print the manual page, shell completions or reference",
           [&app, &status, request, formats = std::move(formats), render = std::move(render)](CLI::App& verb) {
             const std::vector<std::string_view> words(formats.begin(), formats.end());
             offers_words(
                 verb.add_option("FORMAT", request->format, fmt::format("{}; names", fmt::join(formats, ", "))), words)
                 ->required();
             offers_words(verb.add_option("LIST", request->list, "With names: models, hardware, ...; settings, axes"),
                          completion_lists());
             verb.footer(
                 fmt::format("names prints one list of the current config folder, for completion scripts.\n\n"
                             "Examples:\n  {0} pages man | man -l -\n  source <({0} pages bash)\n"
                             "  {0} pages names models",
                             app.get_name()));
             verb.callback([&app, &status, request, formats, render] {
               const PagesRequest request_copy = *request;  // a copy, because reading the tree parses again
               print_page(app, request_copy, formats, render);
               status = exit_code::done;
             });
           });
}

}  // namespace commfuse
