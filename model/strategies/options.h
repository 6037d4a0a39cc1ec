// SPDX-License-Identifier: Apache-2.0
// Options that select one schedule of a strategy. Shared options, which have a member of StrategyOptions, are described
// here; other options of a single strategy are described in the file of the strategy (Strategy::own_options). Settings,
// flags, result columns and tests use one list of all options.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/dtype.h"
#include "model/enum_set.h"
#include "model/program/program.h"

namespace commfuse {

/// ring: data moves to the neighbour, step by step; direct: every shard is sent directly to the rank that needs it.
enum class Form : std::uint8_t { ring, direct };
/// Time at which data from other ranks are summed: all at the end, or each as it arrives. The owner of a shard sums the
/// partial products; a weight's gradient sums over the shards from which it is computed.
enum class Sum : std::uint8_t { end, arrival };
/// one: all shards move in one direction; halves: half of every shard in each direction; shards: whole shards, half of
/// them in each direction.
enum class Directions : std::uint8_t { one, halves, shards };
/// Cut of the attention core: none; by query slice; by query slice with two mirrored slices per rank, which balances a
/// causal mask.
enum class AttentionCut : std::uint8_t { whole, by_query, zigzag };
/// Source of the gathered input in the backward pass of a column-parallel GEMM: gathered again, or saved.
enum class Regather : std::uint8_t { again, saved };

/// Largest number of options in the own_options of all strategies together.
inline constexpr std::size_t max_own_options = 8;

/// Values of all options. Options that a strategy does not use keep their defaults.
struct StrategyOptions {
  std::int32_t slices = 4;      // k of data slicing
  std::int32_t sub_slices = 1;  // m: number of parts of one shard, which are sent and multiplied one by one
  Form form = Form::ring;
  LaneKind add_lane = LaneKind::compute;  // lane for the adds of a ring, and of sums on arrival: compute or aux
  Sum sum = Sum::end;                     // when the direct form, or a weight's gradient, is summed
  std::int32_t lanes = 1;                 // number of communication lanes
  Directions directions = Directions::one;
  std::int32_t group = 1;  // g: number of ring steps whose shards one GEMM multiplies together
  std::int32_t inner = 1;  // number of ranks of the inner ring of nested rings; 1: the ring is flat
  AttentionCut attention = AttentionCut::whole;
  /// Values of the options of Strategy::own_options; 0 is the default.
  std::array<std::int16_t, max_own_options> own_values{};
  Regather regather = Regather::again;
  DType dtype = DType::bf16;  // dtype of tensors and of the wire
  friend auto operator<=>(const StrategyOptions&, const StrategyOptions&) = default;
};

/// The options of shared_options, in the same order. The options of Strategy::own_options are numbered starting at
/// `first_own`, in the order of the strategies (own_option).
enum class Option : std::uint8_t {
  slices,
  sub_slices,
  form,
  add_lane,
  sum,
  lanes,
  directions,
  group,
  inner,
  attention,
  regather,
  first_own,
};

using OptionSet = EnumSet<Option>;

/// A word of an option, and its value.
template <class T>
using OptionWord = std::pair<std::string_view, T>;
template <class T, std::size_t count>
using OptionWords = std::array<OptionWord<T>, count>;

// The first word of each option is the default.
inline constexpr OptionWords<Form, 2> form_words{{{"ring", Form::ring}, {"direct", Form::direct}}};
inline constexpr OptionWords<LaneKind, 2> add_lane_words{{{"compute", LaneKind::compute}, {"aux", LaneKind::aux}}};
inline constexpr OptionWords<Sum, 2> sum_words{{{"end", Sum::end}, {"arrival", Sum::arrival}}};
inline constexpr OptionWords<Directions, 3> direction_words{
    {{"one", Directions::one}, {"halves", Directions::halves}, {"shards", Directions::shards}}};
inline constexpr OptionWords<AttentionCut, 3> attention_words{
    {{"whole", AttentionCut::whole}, {"by_query", AttentionCut::by_query}, {"zigzag", AttentionCut::zigzag}}};
inline constexpr OptionWords<Regather, 2> regather_words{{{"again", Regather::again}, {"saved", Regather::saved}}};

/// A member of StrategyOptions that has words as values.
template <class T>
struct WordOption {
  T StrategyOptions::*member;
  std::span<const OptionWord<T>> words;
};
using CountOption = std::int32_t StrategyOptions::*;

/// Values of an option of Strategy::own_options: a count with its default, or words of which the first is the default.
struct OwnCount {
  std::int16_t preset;
};
struct OwnWords {
  std::span<const std::string_view> words;
};

/// Full description of an option; settings, flags and columns of results follow from it.
struct DescribedOption {
  Option option = Option::first_own;
  /// Key among the settings, "strategy.slices"; the part after the dot names the column of results.
  std::string_view key;
  std::string_view flag;    ///< "slices"
  std::string_view doc;     ///< description of the setting, one line
  std::string_view column;  ///< description of the column of results, one line
  std::string_view example;
  std::string_view noun, nouns;  ///< what messages call one word and several words; for a count, both are its unit
  std::variant<CountOption, WordOption<Form>, WordOption<LaneKind>, WordOption<Sum>, WordOption<Directions>,
               WordOption<AttentionCut>, WordOption<Regather>, OwnCount, OwnWords>
      value;
  /// True if the option has no effect when the attention core is cut: rows are then computed when GEMMs request them.
  bool needs_whole_attention = false;
};

inline constexpr std::array shared_options{
    DescribedOption{.option = Option::slices,
                    .key = "strategy.slices",
                    .flag = "slices",
                    .doc = "sliced: number of slices k; default: the best of 2, 4, 8",
                    .column = "sliced: k",
                    .example = "4",
                    .noun = "slices",
                    .nouns = "slices",
                    .value = &StrategyOptions::slices},
    DescribedOption{.option = Option::sub_slices,
                    .key = "strategy.sub_slices",
                    .flag = "sub-slices",
                    .doc = "Sub-slices per shard, sent one at a time",
                    .column = "commfuse: m",
                    .example = "2",
                    .noun = "sub-slices",
                    .nouns = "sub-slices",
                    .value = &StrategyOptions::sub_slices},
    DescribedOption{.option = Option::form,
                    .key = "strategy.form",
                    .flag = "form",
                    .doc = "commfuse: ring or direct; default: the faster",
                    .column = "commfuse: ring or direct",
                    .example = "ring",
                    .noun = "form",
                    .nouns = "forms",
                    .value = WordOption<Form>{&StrategyOptions::form, form_words}},
    DescribedOption{.option = Option::add_lane,
                    .key = "strategy.add_lane",
                    .flag = "add-lane",
                    .doc = "commfuse ring: lane of the adds (default: the faster)",
                    .column = "commfuse ring: where adds run",
                    .example = "aux",
                    .noun = "add lane",
                    .nouns = "lanes",
                    .value = WordOption<LaneKind>{&StrategyOptions::add_lane, add_lane_words}},
    DescribedOption{.option = Option::sum,
                    .key = "strategy.sum",
                    .flag = "sum",
                    .doc = "commfuse direct: add at the end, or on arrival",
                    .column = "commfuse direct: when the owner sums",
                    .example = "arrival",
                    .noun = "value",
                    .nouns = "values",
                    .value = WordOption<Sum>{&StrategyOptions::sum, sum_words}},
    DescribedOption{.option = Option::lanes,
                    .key = "strategy.lanes",
                    .flag = "lanes",
                    .doc = "commfuse: concurrent communication lanes",
                    .column = "commfuse: communication lanes",
                    .example = "7",
                    .noun = "lanes",
                    .nouns = "lanes",
                    .value = &StrategyOptions::lanes},
    DescribedOption{.option = Option::directions,
                    .key = "strategy.directions",
                    .flag = "directions",
                    .doc = "commfuse ring: one direction, or halves or shards in both",
                    .column = "commfuse ring: one direction, or halves or shards in both",
                    .example = "halves",
                    .noun = "direction",
                    .nouns = "directions",
                    .value = WordOption<Directions>{&StrategyOptions::directions, direction_words}},
    DescribedOption{.option = Option::group,
                    .key = "strategy.group",
                    .flag = "group",
                    .doc = "Shards per GEMM",
                    .column = "commfuse: ring steps per GEMM",
                    .example = "2",
                    .noun = "steps",
                    .nouns = "steps",
                    .value = &StrategyOptions::group},
    DescribedOption{.option = Option::inner,
                    .key = "strategy.inner",
                    .flag = "inner",
                    .doc = "commfuse: ranks per inner ring of two nested rings",
                    .column = "commfuse: ranks of the inner ring",
                    .example = "8",
                    .noun = "ranks",
                    .nouns = "ranks",
                    .value = &StrategyOptions::inner},
    DescribedOption{.option = Option::attention,
                    .key = "strategy.attention",
                    .flag = "attention",
                    .doc = "Attention core: whole, split by query, or balanced (zigzag)",
                    .column = "how the attention core is cut",
                    .example = "by_query",
                    .noun = "cut",
                    .nouns = "cuts",
                    .value = WordOption<AttentionCut>{&StrategyOptions::attention, attention_words}},
    DescribedOption{.option = Option::regather,
                    .key = "strategy.regather",
                    .flag = "regather",
                    .doc = "Backward pass: gather the input again, or use the saved one",
                    .column = "backward: gathered again or saved",
                    .example = "saved",
                    .noun = "value",
                    .nouns = "values",
                    .value = WordOption<Regather>{&StrategyOptions::regather, regather_words}},
};

/// Exclusive upper bound of option numbers.
inline constexpr std::size_t max_options = shared_options.size() + max_own_options;
static_assert(
    [] {
      for (std::size_t i = 0; i < shared_options.size(); ++i) {
        if (static_cast<std::size_t>(shared_options[i].option) != i) {
          return false;
        }
      }
      return shared_options.size() == static_cast<std::size_t>(Option::first_own);
    }(),
    "the table is in the order of Option");

/// Returns all options, in the order of every listing.
std::span<const Option> all_options();
const DescribedOption& entry_of(Option option);
/// Returns a table in the order of every listing: `before`, make(option) for all options, then `after`.
template <class Entry, std::size_t entries_before, std::size_t entries_after>
std::vector<Entry> with_options(const std::array<Entry, entries_before>& before, auto make,
                                const std::array<Entry, entries_after>& after) {
  std::vector<Entry> table(before.begin(), before.end());
  for (const Option option : all_options()) {
    table.push_back(make(option));
  }
  table.insert(table.end(), after.begin(), after.end());
  return table;
}
/// Returns make.template operator()<option>() for every option number: an array of function pointers.
template <class Function>
constexpr std::array<Function, max_options> by_option(auto make) {
  return [&]<std::size_t... index>(std::index_sequence<index...>) {
    return std::array<Function, max_options>{make.template operator()<static_cast<Option>(index)>()...};
  }
  (std::make_index_sequence<max_options>{});
}
/// Returns the option that `entry` describes. Requires `entry` to be an element of some Strategy::own_options.
Option own_option(const DescribedOption& entry);
/// Returns the name of the column of results, "slices".
std::string_view name_of(Option option);
std::optional<Option> option_named(std::string_view name);
/// Returns true if the values of the option are whole numbers, false if they are words.
bool is_count(Option option);
/// Returns the words of an option that is not a count; the first is its default.
std::vector<std::string_view> words_of(Option option);
/// Returns the value as text: "4", "ring".
std::string text_of(Option option, const StrategyOptions& options);
/// Sets the option from the text of a word, or of a number in any form of parse_count. Aborts if the text is not a
/// value of the option.
void put(Option option, std::string_view text, StrategyOptions& options);
/// Copies the value of one option.
void copy(Option option, const StrategyOptions& from, StrategyOptions& to);

std::string_view name_of(Form form);

/// Returns every combination of the candidates with one option set to each of these values; returns the candidates
/// unchanged if the option is fixed.
template <class T>
std::vector<StrategyOptions> expanded(const std::vector<StrategyOptions>& candidates, OptionSet fixed, Option option,
                                      T StrategyOptions::*member, std::initializer_list<T> values) {
  if (fixed.has(option)) {
    return candidates;
  }
  std::vector<StrategyOptions> candidates_expanded;
  for (const StrategyOptions& candidate : candidates) {
    for (const T value : values) {
      candidates_expanded.push_back(candidate);
      candidates_expanded.back().*member = value;
    }
  }
  return candidates_expanded;
}

/// Overload for an option of Strategy::own_options; its values are passed as text.
std::vector<StrategyOptions> expanded(const std::vector<StrategyOptions>& candidates, OptionSet fixed, Option option,
                                      std::initializer_list<std::string_view> values);

}  // namespace commfuse
