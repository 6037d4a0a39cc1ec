// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/options.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>
#include <variant>

#include "model/check.h"

namespace commfuse {

namespace {

template <class T>
using Word = std::pair<std::string_view, T>;

constexpr std::array forms{Word<Form>{"ring", Form::ring}, Word<Form>{"direct", Form::direct}};
constexpr std::array add_lanes{Word<LaneKind>{"compute", LaneKind::compute}, Word<LaneKind>{"aux", LaneKind::aux}};
constexpr std::array sums{Word<Sum>{"end", Sum::end}, Word<Sum>{"arrival", Sum::arrival}};
constexpr std::array directions{Word<Directions>{"one", Directions::one},
                                Word<Directions>{"halves", Directions::halves},
                                Word<Directions>{"shards", Directions::shards}};
constexpr std::array cuts{Word<AttentionCut>{"whole", AttentionCut::whole},
                          Word<AttentionCut>{"by_query", AttentionCut::by_query},
                          Word<AttentionCut>{"zigzag", AttentionCut::zigzag}};
constexpr std::array shuffles{Word<Shuffles>{"strided", Shuffles::strided}, Word<Shuffles>{"copied", Shuffles::copied}};
constexpr std::array regathers{Word<Regather>{"again", Regather::again}, Word<Regather>{"saved", Regather::saved}};

/// One option: a member of StrategyOptions and, unless it is a count, its words.
template <class T>
struct Choice {
  T StrategyOptions::*member;
  std::span<const Word<T>> words;
};
using Count = std::int32_t StrategyOptions::*;
using Entry = std::variant<Count, Choice<Form>, Choice<LaneKind>, Choice<Sum>, Choice<Directions>, Choice<AttentionCut>,
                           Choice<Shuffles>, Choice<Regather>>;

Entry entry_of(Option option) {
  switch (option) {
    case Option::slices: return &StrategyOptions::slices;
    case Option::sub_slices: return &StrategyOptions::sub_slices;
    case Option::form: return Choice<Form>{&StrategyOptions::form, forms};
    case Option::add_lane: return Choice<LaneKind>{&StrategyOptions::add_lane, add_lanes};
    case Option::sum: return Choice<Sum>{&StrategyOptions::sum, sums};
    case Option::lanes: return &StrategyOptions::lanes;
    case Option::directions: return Choice<Directions>{&StrategyOptions::directions, directions};
    case Option::group: return &StrategyOptions::group;
    case Option::inner: return &StrategyOptions::inner;
    case Option::attention: return Choice<AttentionCut>{&StrategyOptions::attention, cuts};
    case Option::shuffles: return Choice<Shuffles>{&StrategyOptions::shuffles, shuffles};
    case Option::regather: return Choice<Regather>{&StrategyOptions::regather, regathers};
  }
  check(false, "an option of the list");
  return &StrategyOptions::slices;
}

template <class T>
std::string_view word_of(std::span<const Word<T>> words, T value) {
  return std::find_if(words.begin(), words.end(), [&](const Word<T>& word) { return word.second == value; })->first;
}

}  // namespace

std::string_view name_of(Option option) {
  switch (option) {
    case Option::slices: return "slices";
    case Option::sub_slices: return "sub_slices";
    case Option::form: return "form";
    case Option::add_lane: return "add_lane";
    case Option::sum: return "sum";
    case Option::lanes: return "lanes";
    case Option::directions: return "directions";
    case Option::group: return "group";
    case Option::inner: return "inner";
    case Option::attention: return "attention";
    case Option::shuffles: return "shuffles";
    case Option::regather: return "regather";
  }
  return "";
}

bool is_count(Option option) { return std::holds_alternative<Count>(entry_of(option)); }

std::vector<std::string_view> words_of(Option option) {
  return std::visit(
      [](const auto& entry) {
        std::vector<std::string_view> words;
        if constexpr (!std::is_same_v<std::decay_t<decltype(entry)>, Count>) {
          for (const auto& [word, value] : entry.words) {
            words.push_back(word);
          }
        }
        return words;
      },
      entry_of(option));
}

std::string text_of(Option option, const StrategyOptions& options) {
  return std::visit(
      [&](const auto& entry) {
        if constexpr (std::is_same_v<std::decay_t<decltype(entry)>, Count>) {
          return std::to_string(options.*entry);
        } else {
          return std::string{word_of(entry.words, options.*entry.member)};
        }
      },
      entry_of(option));
}

void put(Option option, std::string_view text, StrategyOptions& options) {
  std::visit(
      [&](const auto& entry) {
        if constexpr (std::is_same_v<std::decay_t<decltype(entry)>, Count>) {
          const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), options.*entry);
          check(error == std::errc{} && end == text.data() + text.size(), "the value of a count is a number");
        } else {
          const auto found = std::find_if(entry.words.begin(), entry.words.end(),
                                          [&](const auto& word) { return word.first == text; });
          check(found != entry.words.end(), "the value of an option is one of its words");
          options.*entry.member = found->second;
        }
      },
      entry_of(option));
}

std::string_view name_of(Form form) { return word_of(std::span<const Word<Form>>(forms), form); }

}  // namespace commfuse
