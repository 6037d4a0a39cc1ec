// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/options.h"

#include <algorithm>
#include <charconv>

#include "model/check.h"

namespace commfuse {

namespace {

template <class T>
std::string_view word_of(std::span<const OptionWord<T>> words, T value) {
  return std::find_if(words.begin(), words.end(), [&](const OptionWord<T>& word) { return word.second == value; })
      ->first;
}

}  // namespace

std::vector<std::string_view> words_of(Option option) {
  return std::visit(
      [](const auto& entry) {
        std::vector<std::string_view> words;
        if constexpr (!std::is_same_v<std::decay_t<decltype(entry)>, CountOption>) {
          for (const auto& [word, value] : entry.words) {
            words.push_back(word);
          }
        }
        return words;
      },
      entry_of(option).value);
}

std::string text_of(Option option, const StrategyOptions& options) {
  return std::visit(
      [&](const auto& entry) {
        if constexpr (std::is_same_v<std::decay_t<decltype(entry)>, CountOption>) {
          return std::to_string(options.*entry);
        } else {
          return std::string{word_of(entry.words, options.*entry.member)};
        }
      },
      entry_of(option).value);
}

void put(Option option, std::string_view text, StrategyOptions& options) {
  std::visit(
      [&](const auto& entry) {
        if constexpr (std::is_same_v<std::decay_t<decltype(entry)>, CountOption>) {
          const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), options.*entry);
          check(error == std::errc{} && end == text.data() + text.size(), "the value of a count is a number");
        } else {
          const auto match = std::find_if(entry.words.begin(), entry.words.end(),
                                          [&](const auto& word) { return word.first == text; });
          check(match != entry.words.end(), "the value of an option is one of its words");
          options.*entry.member = match->second;
        }
      },
      entry_of(option).value);
}

void copy(Option option, const StrategyOptions& from, StrategyOptions& to) {
  std::visit(
      [&](const auto& entry) {
        if constexpr (std::is_same_v<std::decay_t<decltype(entry)>, CountOption>) {
          to.*entry = from.*entry;
        } else {
          to.*entry.member = from.*entry.member;
        }
      },
      entry_of(option).value);
}

std::string_view name_of(Form form) { return word_of(std::span<const OptionWord<Form>>(form_words), form); }

}  // namespace commfuse
