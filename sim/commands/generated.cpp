// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/generated.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/strategies/scope.h"
#include "model/text/ranges.h"
#include "sim/commands/schedule_commands.h"
#include "sim/commands/setting_flags.h"

namespace commfuse::sim {

namespace {

/// Returns the members of `choices` that `list` names, each once; the word "all" names all of them.
template <class T, class Values, class Name>
std::vector<T> chosen(std::string_view flag, std::string_view list, const Values& choices, const Name& name,
                      std::string_view noun) {
  std::vector<std::string_view> names{"all"};
  for (const T& choice : choices) {
    names.push_back(name(choice));
  }
  std::vector<T> result;
  for (const std::string_view word : split_list(list)) {
    require_word(flag, word, names, noun);
    for (const T& choice : choices) {
      const bool is_known = std::ranges::find(result, name(choice), name) != result.end();
      if (!is_known && (word == "all" || word == name(choice))) {
        result.push_back(choice);
      }
    }
  }
  return result;
}

}  // namespace

void add_choice_flags(CLI::App& command, GeneratedChoice& choice) {
  offers(command.add_option("--strategy", choice.strategies, "all, or a comma-separated list")->capture_default_str(),
         offer_of(*find_field("strategy.name")));
  command.add_option("--ranks", choice.ranks, "4; 2,4,8; 1..8")->capture_default_str();
  std::vector<std::string_view> scopes{"all"};
  for (const Scope scope : all_scopes) {
    scopes.push_back(name_of(scope));
  }
  offers_words(command.add_option("--scope", choice.scopes, "all, or a comma-separated list")->capture_default_str(),
               scopes);
}

void require_no_choice(const CLI::App& command, const std::vector<std::string>& files) {
  for (const char* flag : {"--strategy", "--ranks", "--scope"}) {
    if (!files.empty() && command.count(flag) > 0) {
      throw ConfigError(fmt::format("{} chooses among generated schedules; remove it, or the file", flag));
    }
  }
}

void for_each_generated(const GeneratedChoice& choice, const std::function<void(Program)>& visit) {
  const auto chosen_strategies = chosen<Strategy>(
      "--strategy", choice.strategies, strategies(), [](const Strategy& strategy) { return strategy.name; },
      "strategy");
  const auto scopes = chosen<Scope>(
      "--scope", choice.scopes, all_scopes, [](Scope scope) { return name_of(scope); }, "scope");
  const std::vector<std::int32_t> ranks =
      parse_whole_numbers(choice.ranks, {.flag = "--ranks", .lowest = 1, .highest = 4096});
  for (const Scope scope : scopes) {
    for (const std::int32_t count : ranks) {
      for (const Strategy& strategy : chosen_strategies) {
        for (const StrategyOptions& options : schedules_to_prove(strategy, kinds_of(scope), count)) {
          visit(program_of(scope, true, count, strategy, options));
        }
      }
    }
  }
}

}  // namespace commfuse::sim
