// SPDX-License-Identifier: Apache-2.0
// What a strategy is, and the list of them.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/strategies/options.h"
#include "model/strategies/stage.h"
#include "model/workload/sites.h"

namespace commfuse {

/// Makes the ops of one site; Done is what completes its output.
using Generator = Done (*)(const Stage&, const StrategyOptions&);

struct Strategy {
  std::string_view name;
  std::string_view summary;  // what it does, one line
  std::string_view exposed;  // what stays exposed, one line
  std::string_view source;   // who describes it, one line
  bool bound = false;        // a limit that no implementation reaches: shown beside the others, never the winner
  OptionSet uses;            // the options that select a schedule of it
  /// Blocks that one rank's shard of tokens is cut into.
  std::int32_t (*cuts)(const StrategyOptions&);
  /// By kind of site; nullptr where the strategy has no schedule. At a site of attention the options say how its core
  /// is cut, if the strategy uses Option::attention.
  Generator ag_gemm = nullptr;
  Generator gemm_rs = nullptr;
  Generator mlp_ar = nullptr;
  Generator ag_gemm_backward = nullptr;
  Generator gemm_rs_backward = nullptr;
  Generator gemm_a2a = nullptr;
  Generator attention_a2a = nullptr;
  Generator weight_ag_gemm = nullptr;
  Generator gradient_rs = nullptr;
  /// The options that make a difference at a site of this kind, given the others.
  OptionSet (*relevant)(SiteKind, const StrategyOptions&);
  /// The schedules worth trying that agree with `base` in what is fixed; and those that are proved.
  std::vector<StrategyOptions> (*tried)(const StrategyOptions& base, OptionSet fixed);
  std::vector<StrategyOptions> (*proved)(const StrategyOptions& base);
  /// Its own parameters in words: "k=8", "ring, add on aux"; empty when there are none.
  std::string (*describe)(const StrategyOptions&);
  /// Why these options give no schedule on so many ranks, a sentence with its remedy; empty when they do. May be null.
  std::string (*refusal)(const StrategyOptions&, std::int32_t ranks) = nullptr;
  /// The same schedule with counts no larger than so many ranks can use. May be null.
  StrategyOptions (*capped)(StrategyOptions, std::int32_t ranks) = nullptr;

  [[nodiscard]] std::vector<StrategyOptions> variants(const StrategyOptions& base, OptionSet fixed = {}) const {
    return tried(base, fixed);
  }
};

// Each in a file of its own. A new one is that file, its declaration and its place in the list.
extern const Strategy serial_strategy;
extern const Strategy sliced_strategy;
extern const Strategy looped_einsum_strategy;
extern const Strategy async_tp_strategy;
extern const Strategy ring_exchange_strategy;
extern const Strategy tokenweave_strategy;
extern const Strategy commfuse_strategy;
extern const Strategy fused_kernel_strategy;

/// In the order of every listing.
inline constexpr std::array all_strategies{&serial_strategy,   &sliced_strategy,        &looped_einsum_strategy,
                                           &async_tp_strategy, &ring_exchange_strategy, &tokenweave_strategy,
                                           &commfuse_strategy, &fused_kernel_strategy};

/// all_strategies as a range of references.
class Strategies {
 public:
  class Iterator {
   public:
    explicit Iterator(const Strategy* const* place) : place_(place) {}
    const Strategy& operator*() const { return **place_; }
    Iterator& operator++() {
      ++place_;
      return *this;
    }
    friend bool operator==(Iterator, Iterator) = default;

   private:
    const Strategy* const* place_;
  };
  [[nodiscard]] static Iterator begin() { return Iterator(all_strategies.data()); }
  [[nodiscard]] static Iterator end() { return Iterator(all_strategies.data() + all_strategies.size()); }
};
inline Strategies strategies() { return {}; }

/// nullptr when there is none of that name.
const Strategy* find_strategy(std::string_view name);

/// Its generator for a kind of site; nullptr when it has none. That of attention_rs is that of gemm_rs.
Generator generator_of(const Strategy& strategy, SiteKind kind);
/// Whether it has a generator for each of the kinds.
bool applies(const Strategy& strategy, std::span<const SiteKind> kinds);
/// The options that make a difference at one of these sites.
OptionSet relevant_options(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options);
/// Blocks that one rank's shard is cut into at these sites; one where slicing makes no difference.
std::int32_t cuts_of(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options);
/// The parameters that make a difference at these sites, in words: "k=8", "ring, x saved", "ring, by query";
/// empty when none does.
std::string parameters_of(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options);
/// The same schedule: counts beyond what so many ranks can use are brought down, and options that make no difference at
/// these sites are put back to their default.
StrategyOptions canonical(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options,
                          std::int32_t ranks);
/// The same schedules in that form, without repetition.
std::vector<StrategyOptions> distinct(const Strategy& strategy, std::span<const SiteKind> kinds,
                                      const std::vector<StrategyOptions>& candidates, std::int32_t ranks);
/// Strategy::refusal for options that make a difference at these sites; empty when there is a schedule.
std::string refusal_of(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options,
                       std::int32_t ranks);
/// Every distinct schedule for these sites that is tried on so many ranks; none where the strategy does not apply.
std::vector<StrategyOptions> schedules_to_try(const Strategy& strategy, std::span<const SiteKind> kinds,
                                              std::int32_t ranks, const StrategyOptions& base = {});
/// Every distinct schedule for these sites that is proved on so many ranks; none where the strategy does not apply.
std::vector<StrategyOptions> schedules_to_prove(const Strategy& strategy, std::span<const SiteKind> kinds,
                                                std::int32_t ranks, const StrategyOptions& base = {});

}  // namespace commfuse
