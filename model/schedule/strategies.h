// SPDX-License-Identifier: Apache-2.0
// The list of strategies. A new one is one file with its generators, one declaration and one line in strategies.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/schedule/options.h"
#include "model/schedule/stage.h"
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
  /// By kind of site; nullptr where the strategy has no schedule.
  Generator ag_gemm = nullptr;
  Generator gemm_rs = nullptr;
  Generator mlp_ar = nullptr;
  /// The options that make a difference at a site of this kind, given the others.
  OptionSet (*relevant)(SiteKind, const StrategyOptions&);
  /// The schedules worth trying that agree with `base` in what is fixed; and those that are proved.
  std::vector<StrategyOptions> (*tried)(const StrategyOptions& base, OptionSet fixed);
  std::vector<StrategyOptions> (*proved)(const StrategyOptions& base);
  /// The parameters in words: "k=8", "ring, add on aux"; empty when there are none.
  std::string (*describe)(const StrategyOptions&);
  /// Why these options give no schedule on so many ranks, a sentence with its remedy; empty when they do. May be null.
  std::string (*refusal)(const StrategyOptions&, std::int32_t ranks) = nullptr;

  [[nodiscard]] std::vector<StrategyOptions> variants(const StrategyOptions& base, OptionSet fixed = {}) const {
    return tried(base, fixed);
  }
};

std::span<const Strategy> strategies();

/// nullptr when there is none of that name.
const Strategy* find_strategy(std::string_view name);

/// Its generator for a kind of site; nullptr when it has none.
Generator generator_of(const Strategy& strategy, SiteKind kind);
/// Whether it has a generator for each of the kinds.
bool applies(const Strategy& strategy, std::span<const SiteKind> kinds);
/// The options that make a difference at one of these sites.
OptionSet relevant_options(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options);
/// The same schedules without repetition: options that make no difference at these sites are put back to their default.
std::vector<StrategyOptions> distinct(const Strategy& strategy, std::span<const SiteKind> kinds,
                                      const std::vector<StrategyOptions>& candidates);
/// Every distinct schedule for these sites that is proved on so many ranks; none where the strategy does not apply.
std::vector<StrategyOptions> schedules_to_prove(const Strategy& strategy, std::span<const SiteKind> kinds,
                                                std::int32_t ranks, const StrategyOptions& base = {});

// The generators, one file each.
Done serial_ag_gemm(const Stage& stage, const StrategyOptions& options);
Done serial_gemm_rs(const Stage& stage, const StrategyOptions& options);
Done sliced_ag_gemm(const Stage& stage, const StrategyOptions& options);
Done sliced_gemm_rs(const Stage& stage, const StrategyOptions& options);
Done fuse_ag_ring(const Stage& stage, const StrategyOptions& options);
Done fuse_ag_direct(const Stage& stage, const StrategyOptions& options);
Done fuse_rs_ring(const Stage& stage, const StrategyOptions& options);
Done fuse_rs_direct(const Stage& stage, const StrategyOptions& options);
Done serial_mlp_ar(const Stage& stage, const StrategyOptions& options);
Done sliced_mlp_ar(const Stage& stage, const StrategyOptions& options);
Done tokenweave_mlp_ar(const Stage& stage, const StrategyOptions& options);
Done looped_einsum_ag_gemm(const Stage& stage, const StrategyOptions& options);
Done looped_einsum_gemm_rs(const Stage& stage, const StrategyOptions& options);
Done async_tp_ag_gemm(const Stage& stage, const StrategyOptions& options);
Done async_tp_gemm_rs(const Stage& stage, const StrategyOptions& options);
Done ring_exchange_ag_gemm(const Stage& stage, const StrategyOptions& options);
Done ring_exchange_gemm_rs(const Stage& stage, const StrategyOptions& options);
Done fused_kernel_ag_gemm(const Stage& stage, const StrategyOptions& options);
Done fused_kernel_gemm_rs(const Stage& stage, const StrategyOptions& options);

}  // namespace commfuse
