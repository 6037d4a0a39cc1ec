// SPDX-License-Identifier: Apache-2.0
#include "python/engine/keywords.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "model/config/command_line.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/text/suggest.h"
#include "sim/commands/commands.h"
#include "sim/commands/terminal.h"

namespace commfuse::python {

namespace {

constexpr std::string_view program_name = "commfuse-sim";

Keyword keyword_of(CLI::Option& option) {
  Keyword keyword{.doc = option.get_description(),
                  .group = option.get_group(),
                  .by_place = option.get_positional(),
                  .is_required = option.get_required(),
                  .repeats = option.get_items_expected_max() > 1};
  std::replace(keyword.doc.begin(), keyword.doc.end(), '\n', ' ');
  if (keyword.by_place) {
    keyword.flags.push_back(option.get_name(true));
  }
  for (const std::string& name : option.get_lnames()) {
    keyword.flags.push_back("--" + name);
  }
  if (option.get_items_expected_max() > 0) {
    const std::string type = option.get_type_name();
    keyword.value = type.substr(0, type.find(':'));  // the checks after the colon are dropped
    keyword.preset = option.get_default_str();
  }
  // Options of type WORDS take several words in one value, so their words are not the allowed values.
  if (const Offer offer = offer_of(option); offer.kind == OfferKind::words && keyword.value != "WORDS") {
    keyword.words = offer.words;
  }
  return keyword;
}

}  // namespace

const std::vector<std::string>& command_names() {
  static const std::vector<std::string> names{"run", "sweep", "tune", "plan", "score", "calibrate", "expect"};
  return names;
}

void add_commands(CLI::App& program, sim::Caller& caller) {
  sim::add_run(program, caller);
  sim::add_sweep(program, caller);
  sim::add_tune(program, caller);
  sim::add_plan(program, caller);
  sim::add_score(program, caller);
  sim::add_calibrate(program, caller);
  sim::add_expect(program, caller);
}

Command command_of(const std::string& name) {
  const std::vector<std::string>& known = command_names();
  if (std::ranges::find(known, name) == known.end()) {
    const std::vector<std::string_view> words(known.begin(), known.end());
    throw ConfigError(fmt::format("unknown command {}; {}", in_quotes(name), remedy_for(name, words, "commands")));
  }
  int status = exit_code::done;
  sim::Terminal unused(status);  // no command runs
  CLI::App program("", std::string(program_name));
  add_commands(program, unused);
  fill_verb(program, {std::string(program_name), name});
  CLI::App& verb = *program.get_subcommand(name);
  Command command{.doc = verb.get_description(), .footer = verb.get_footer()};
  for (CLI::Option* option : verb.get_options()) {
    if (option != verb.get_help_ptr() && option != verb.get_help_all_ptr()) {
      command.keywords.push_back(keyword_of(*option));
    }
  }
  return command;
}

}  // namespace commfuse::python
