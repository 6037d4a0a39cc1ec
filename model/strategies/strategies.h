// SPDX-License-Identifier: Apache-2.0
// Definition of a strategy, and the list of all strategies.
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

/// Adds the ops of one site and returns the ops that complete its output.
using Generator = Done (*)(const Stage&, const StrategyOptions&);

struct Strategy {
  std::string_view name;
  std::string_view summary;  // its schedule, one line
  std::string_view exposed;  // its exposed communication, one line
  std::string_view source;   // publication or program that describes it, one line
  bool bound = false;        // a limit that no implementation reaches: shown next to other strategies, never the winner
  OptionSet uses;            // the shared options that select one of its schedules
  std::span<const DescribedOption> own_options{};  // the options that only this strategy has, described in its file
  /// Number of blocks into which one rank's shard of tokens is cut.
  std::int32_t (*cuts)(const StrategyOptions&);
  bool gemm_ar_cuts_columns = false;  // at a gemm_ar site, the cuts are columns of the sums instead of tokens
  /// Generators by kind of site; nullptr if the strategy has no schedule. At an attention site, the options state how
  /// its core is cut, if the strategy uses Option::attention.
  Generator ag_gemm = nullptr;
  Generator gemm_rs = nullptr;
  Generator gemm_ar = nullptr;
  Generator mlp_ar = nullptr;
  Generator ag_gemm_backward = nullptr;
  Generator gemm_rs_backward = nullptr;
  Generator gemm_a2a = nullptr;
  Generator attention_a2a = nullptr;
  Generator weight_ag_gemm = nullptr;
  Generator gradient_rs = nullptr;
  /// Options that make a difference at a site of this kind, given the values of all options.
  OptionSet (*relevant)(SiteKind, const StrategyOptions&);
  /// Schedules to try, which have the value of `base` for each fixed option, and schedules to prove.
  std::vector<StrategyOptions> (*tried)(const StrategyOptions& base, OptionSet fixed);
  std::vector<StrategyOptions> (*proved)(const StrategyOptions& base);
  /// The schedule's parameters in words: "k=8", "ring, add on aux"; empty if there are none.
  std::string (*describe)(const StrategyOptions&);
  /// Reason why these options have no schedule on `ranks` ranks, as a sentence with its remedy; empty if they have one.
  /// May be null.
  std::string (*refusal)(const StrategyOptions&, std::int32_t ranks) = nullptr;
  /// Options for the same schedule, with counts limited to what this many ranks can use. May be null.
  StrategyOptions (*capped)(StrategyOptions, std::int32_t ranks) = nullptr;

  /// Returns true for an option of `uses` or `own_options`.
  [[nodiscard]] bool takes(Option option) const;
  [[nodiscard]] std::vector<StrategyOptions> variants(const StrategyOptions& base, OptionSet fixed = {}) const {
    return tried(base, fixed);
  }
};

// Each strategy has its own file. A new strategy needs a file, its declaration and its place in the list.
extern const Strategy serial_strategy;
extern const Strategy sliced_strategy;
extern const Strategy looped_einsum_strategy;
extern const Strategy async_tp_strategy;
extern const Strategy ring_exchange_strategy;
extern const Strategy tokenweave_strategy;
extern const Strategy commfuse_strategy;
extern const Strategy fused_kernel_strategy;

/// All strategies, in the order of every listing.
inline constexpr std::array all_strategies{&serial_strategy,   &sliced_strategy,        &looped_einsum_strategy,
                                           &async_tp_strategy, &ring_exchange_strategy, &tokenweave_strategy,
                                           &commfuse_strategy, &fused_kernel_strategy};

/// all_strategies as a range of references.
class Strategies {
 public:
  class Iterator {
   public:
    explicit Iterator(const Strategy* const* current) : current_(current) {}
    const Strategy& operator*() const { return **current_; }
    Iterator& operator++() {
      ++current_;
      return *this;
    }
    friend bool operator==(Iterator, Iterator) = default;

   private:
    const Strategy* const* current_;
  };
  [[nodiscard]] static Iterator begin() { return Iterator(all_strategies.data()); }
  [[nodiscard]] static Iterator end() { return Iterator(all_strategies.data() + all_strategies.size()); }
};
inline Strategies strategies() { return {}; }

/// Returns the strategy, or nullptr if no strategy has that name.
const Strategy* find_strategy(std::string_view name);

/// Returns the strategy's generator for a kind of site; nullptr if it has none. attention_rs uses the generator of
/// gemm_rs.
Generator generator_of(const Strategy& strategy, SiteKind kind);
/// Returns true if the strategy has a generator for each of the kinds.
bool applies(const Strategy& strategy, std::span<const SiteKind> kinds);
/// Returns the options that make a difference at any of these sites.
OptionSet relevant_options(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options);
/// Returns the number of blocks into which one rank's shard is cut at these sites. Option::slices counts as 1 if it
/// makes no difference.
std::int32_t cuts_of(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options);
/// Returns the parameters that make a difference at these sites, in words: "k=8", "ring, x saved", "ring, by query";
/// empty if none does.
std::string parameters_of(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options);
/// Returns options for the same schedule in a unique form: counts are limited to what this many ranks can use, and
/// options without effect at these sites get their default.
StrategyOptions canonical(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options,
                          std::int32_t ranks);
/// Returns the schedules in canonical form, without duplicates.
std::vector<StrategyOptions> distinct(const Strategy& strategy, std::span<const SiteKind> kinds,
                                      const std::vector<StrategyOptions>& candidates, std::int32_t ranks);
/// Returns Strategy::refusal for options that make a difference at these sites; empty if there is a schedule.
std::string refusal_of(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options,
                       std::int32_t ranks);
/// Returns every distinct schedule for these sites to try on `ranks` ranks; none if the strategy does not apply.
std::vector<StrategyOptions> schedules_to_try(const Strategy& strategy, std::span<const SiteKind> kinds,
                                              std::int32_t ranks, const StrategyOptions& base = {});
/// Returns every distinct schedule for these sites to prove on `ranks` ranks; none if the strategy does not apply.
std::vector<StrategyOptions> schedules_to_prove(const Strategy& strategy, std::span<const SiteKind> kinds,
                                                std::int32_t ranks, const StrategyOptions& base = {});

}  // namespace commfuse
