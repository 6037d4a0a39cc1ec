// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/options.h"

#include <algorithm>
#include <optional>

#include "model/check.h"
#include "model/strategies/strategies.h"
#include "model/text/quantity.h"

namespace commfuse {

namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;  // clang 14 (the page) needs this guide

template <class T>
std::string_view word_of(std::span<const OptionWord<T>> words, T value) {
  return std::find_if(words.begin(), words.end(), [&](const OptionWord<T>& word) { return word.second == value; })
      ->first;
}

std::int32_t number_in(std::string_view text) {
  const std::optional<std::int64_t> number = parse_count(text);
  check(number.has_value(), "the value of a count is a number");
  return static_cast<std::int32_t>(*number);
}

struct OptionList {
  std::vector<Option> order;                    // options, in the order of every listing
  std::vector<const DescribedOption*> entries;  // by the number of the option
};

/// Options of single strategies come before `regather`, which only backward passes have.
OptionList listed() {
  OptionList list;
  std::vector<const DescribedOption*> of_strategies;
  for (const Strategy& strategy : strategies()) {
    for (const DescribedOption& entry : strategy.own_options) {
      of_strategies.push_back(&entry);
    }
  }
  check(of_strategies.size() <= max_own_options,
        "max_own_options (options.h) is at least the number of options of single strategies");
  for (const DescribedOption& entry : shared_options) {
    list.entries.push_back(&entry);
    for (std::size_t i = 0; entry.option == Option::regather && i < of_strategies.size(); ++i) {
      list.order.push_back(static_cast<Option>(shared_options.size() + i));
    }
    list.order.push_back(entry.option);
  }
  list.entries.insert(list.entries.end(), of_strategies.begin(), of_strategies.end());
  return list;
}

const OptionList& option_list() {
  static const OptionList list = listed();
  return list;
}

/// Returns the index of an option in StrategyOptions::own_values.
std::size_t own_index(Option option) { return static_cast<std::size_t>(option) - shared_options.size(); }

}  // namespace

std::span<const Option> all_options() { return option_list().order; }

const DescribedOption& entry_of(Option option) { return *option_list().entries[static_cast<std::size_t>(option)]; }

Option own_option(const DescribedOption& entry) {
  const std::vector<const DescribedOption*>& entries = option_list().entries;
  const auto match = std::find(entries.begin(), entries.end(), &entry);
  check(match != entries.end(), "an option of a strategy is an entry of its own_options");
  return static_cast<Option>(match - entries.begin());
}

std::string_view name_of(Option option) { return entry_of(option).key.substr(std::string_view("strategy.").size()); }

std::optional<Option> option_named(std::string_view name) {
  const std::span<const Option> options = all_options();
  const auto option = std::ranges::find(options, name, [](Option candidate) { return name_of(candidate); });
  return option == options.end() ? std::nullopt : std::optional(*option);
}

bool is_count(Option option) {
  const auto& value = entry_of(option).value;
  return std::holds_alternative<CountOption>(value) || std::holds_alternative<OwnCount>(value);
}

std::vector<std::string_view> words_of(Option option) {
  using Words = std::vector<std::string_view>;
  return std::visit(Overloaded{[](CountOption) { return Words{}; }, [](OwnCount) { return Words{}; },
                               [](OwnWords entry) { return Words(entry.words.begin(), entry.words.end()); },
                               []<class T>(const WordOption<T>& entry) {
                                 Words words;
                                 for (const auto& [word, value] : entry.words) {
                                   words.push_back(word);
                                 }
                                 return words;
                               }},
                    entry_of(option).value);
}

std::string text_of(Option option, const StrategyOptions& options) {
  return std::visit(
      Overloaded{[&](CountOption member) { return std::to_string(options.*member); },
                 [&](OwnCount entry) { return std::to_string(entry.preset + options.own_values[own_index(option)]); },
                 [&](OwnWords entry) {
                   return std::string(entry.words[static_cast<std::size_t>(options.own_values[own_index(option)])]);
                 },
                 [&]<class T>(const WordOption<T>& entry) {
                   return std::string(word_of(entry.words, options.*entry.member));
                 }},
      entry_of(option).value);
}

void put(Option option, std::string_view text, StrategyOptions& options) {
  std::visit(
      Overloaded{[&](CountOption member) { options.*member = number_in(text); },
                 [&](OwnCount entry) {
                   options.own_values[own_index(option)] = static_cast<std::int16_t>(number_in(text) - entry.preset);
                 },
                 [&](OwnWords entry) {
                   const auto match = std::find(entry.words.begin(), entry.words.end(), text);
                   check(match != entry.words.end(), "the value of an option is one of its words");
                   options.own_values[own_index(option)] = static_cast<std::int16_t>(match - entry.words.begin());
                 },
                 [&]<class T>(const WordOption<T>& entry) {
                   const auto match = std::find_if(entry.words.begin(), entry.words.end(),
                                                   [&](const auto& word) { return word.first == text; });
                   check(match != entry.words.end(), "the value of an option is one of its words");
                   options.*entry.member = match->second;
                 }},
      entry_of(option).value);
}

void copy(Option option, const StrategyOptions& from, StrategyOptions& to) {
  const auto copy_own = [&] { to.own_values[own_index(option)] = from.own_values[own_index(option)]; };
  std::visit(Overloaded{[&](CountOption member) { to.*member = from.*member; }, [&](OwnCount) { copy_own(); },
                        [&](OwnWords) { copy_own(); },
                        [&]<class T>(const WordOption<T>& entry) { to.*entry.member = from.*entry.member; }},
             entry_of(option).value);
}

std::string_view name_of(Form form) { return word_of(std::span<const OptionWord<Form>>(form_words), form); }

std::vector<StrategyOptions> expanded(const std::vector<StrategyOptions>& candidates, OptionSet fixed, Option option,
                                      std::initializer_list<std::string_view> values) {
  if (fixed.has(option)) {
    return candidates;
  }
  std::vector<StrategyOptions> candidates_expanded;
  for (const StrategyOptions& candidate : candidates) {
    for (const std::string_view value : values) {
      candidates_expanded.push_back(candidate);
      put(option, value, candidates_expanded.back());
    }
  }
  return candidates_expanded;
}

}  // namespace commfuse
