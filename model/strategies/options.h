// SPDX-License-Identifier: Apache-2.0
// What selects one schedule of a strategy. One table of options serves settings, flags, result columns and tests.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "model/dtype.h"
#include "model/program/program.h"

namespace commfuse {

/// ring: data moves to the neighbour, step by step; direct: every shard goes straight to where it is needed.
enum class Form : std::uint8_t { ring, direct };
/// When what comes from other ranks is summed up: all at the end, or each as it arrives. The owner of a shard adds up
/// partial sums; a weight's gradient sums over the shards it is made from.
enum class Sum : std::uint8_t { end, arrival };
/// one: all shards one way round; halves: half of every shard each way; shards: whole shards, half of them each way.
enum class Directions : std::uint8_t { one, halves, shards };
/// How the attention core is cut: not at all; by query slice; by query slice with two mirrored slices a rank, which
/// balances a causal mask.
enum class AttentionCut : std::uint8_t { whole, by_query, zigzag };
/// Whether slices of several shards are read where they lie or copied together first, as Ascend CoC does.
enum class Shuffles : std::uint8_t { strided, copied };
/// Where the backward pass of a column-parallel product finds its gathered input: gathered again, or saved.
enum class Regather : std::uint8_t { again, saved };

/// Fields that a strategy does not use keep their defaults.
struct StrategyOptions {
  std::int32_t slices = 4;                // k of data slicing
  std::int32_t sub_slices = 1;            // m: parts that one shard is sent and multiplied in
  Form form = Form::ring;                 //
  LaneKind add_lane = LaneKind::compute;  // of the adds of a ring: compute or aux
  Sum sum = Sum::end;                     // of the direct form
  std::int32_t lanes = 1;                 // communication lanes
  Directions directions = Directions::one;
  std::int32_t group = 1;  // g: ring steps that one product takes together
  std::int32_t inner = 1;  // ranks of the inner ring of a hierarchical one; 1: the ring is flat
  AttentionCut attention = AttentionCut::whole;
  Shuffles shuffles = Shuffles::strided;
  Regather regather = Regather::again;
  DType dtype = DType::bf16;  // of tensors and of the wire
  friend auto operator<=>(const StrategyOptions&, const StrategyOptions&) = default;
};

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
  shuffles,
  regather,
};

inline constexpr std::array all_options{Option::slices, Option::sub_slices, Option::form,       Option::add_lane,
                                        Option::sum,    Option::lanes,      Option::directions, Option::group,
                                        Option::inner,  Option::attention,  Option::shuffles,   Option::regather};

class OptionSet {
 public:
  constexpr OptionSet(std::initializer_list<Option> options = {}) {
    for (const Option option : options) {
      bits_ |= bit(option);
    }
  }
  [[nodiscard]] constexpr bool has(Option option) const { return (bits_ & bit(option)) != 0; }
  constexpr void add(Option option) { bits_ |= bit(option); }
  constexpr void drop(Option option) { bits_ &= ~bit(option); }
  friend bool operator==(OptionSet, OptionSet) = default;

 private:
  static constexpr std::uint32_t bit(Option option) { return std::uint32_t{1} << static_cast<unsigned>(option); }
  std::uint32_t bits_ = 0;
};

/// "slices": strategy.slices among the settings, a column of results.
std::string_view name_of(Option option);
/// True for whole numbers, false for words.
bool is_count(Option option);
/// The words of an option that is no count; the first is its default.
std::vector<std::string_view> words_of(Option option);
/// Its value: "4", "ring".
std::string text_of(Option option, const StrategyOptions& options);
/// Sets it from such a text. Aborts unless it is one.
void put(Option option, std::string_view text, StrategyOptions& options);

std::string_view name_of(Form form);

/// Every combination of the candidates with one option set to each of these values; unchanged where it is fixed.
template <class T>
std::vector<StrategyOptions> expanded(const std::vector<StrategyOptions>& candidates, OptionSet fixed, Option option,
                                      T StrategyOptions::*member, std::initializer_list<T> values) {
  if (fixed.has(option)) {
    return candidates;
  }
  std::vector<StrategyOptions> all;
  for (const StrategyOptions& candidate : candidates) {
    for (const T value : values) {
      all.push_back(candidate);
      all.back().*member = value;
    }
  }
  return all;
}

}  // namespace commfuse
