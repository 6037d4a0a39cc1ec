// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/strategies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/schedule/commfuse.h"

namespace commfuse {

namespace {

std::int32_t one(const StrategyOptions&) { return 1; }
std::int32_t slices(const StrategyOptions& options) { return options.slices; }

OptionSet no_options(SiteKind, const StrategyOptions&) { return {}; }
OptionSet slices_only(SiteKind, const StrategyOptions&) { return {Option::slices}; }

std::vector<StrategyOptions> only(const StrategyOptions& base, OptionSet) { return {base}; }
std::vector<StrategyOptions> only_this(const StrategyOptions& base) { return {base}; }

std::vector<StrategyOptions> slice_counts(const StrategyOptions& base, OptionSet fixed) {
  return expanded({base}, fixed, Option::slices, &StrategyOptions::slices, {2, 4, 8});
}
std::vector<StrategyOptions> all_slice_counts(const StrategyOptions& base) {
  return expanded({base}, {}, Option::slices, &StrategyOptions::slices, {1, 2, 4, 8});
}

std::string nothing(const StrategyOptions&) { return {}; }
std::string slices_in_words(const StrategyOptions& options) { return fmt::format("k={}", options.slices); }

constexpr std::array all_strategies{
    Strategy{.name = "serial",
             .summary = "the collective, then the product (or the reverse)",
             .exposed = "the whole collective",
             .source = "what every framework does without overlap",
             .cuts = one,
             .ag_gemm = serial_ag_gemm,
             .gemm_rs = serial_gemm_rs,
             .relevant = no_options,
             .tried = only,
             .proved = only_this,
             .describe = nothing},
    Strategy{.name = "sliced",
             .summary = "k slices, the collective of one under the product of another (CoC, Megatron)",
             .exposed = "the first gather or the last scatter, k latencies",
             .source = "Ascend MindSpeed CoC; Megatron-Core tp_comm_overlap, pipelined chunks",
             .uses = {Option::slices},
             .cuts = slices,
             .ag_gemm = sliced_ag_gemm,
             .gemm_rs = sliced_gemm_rs,
             .relevant = slices_only,
             .tried = slice_counts,
             .proved = all_slice_counts,
             .describe = slices_in_words},
    Strategy{.name = "commfuse",
             .summary = "ranks-1 point-to-point steps, each under one partial product (FuseAG, FuseRS)",
             .exposed = "nothing while a step is no longer than a partial product",
             .source = "CommFuse, arXiv 2604.24013, algorithms 1 and 2",
             .uses = fused::uses,
             .cuts = fused::cuts,
             .ag_gemm = fused::ag_gemm,
             .gemm_rs = fused::gemm_rs,
             .relevant = fused::relevant,
             .tried = fused::tried,
             .proved = fused::proved,
             .describe = fused::describe,
             .refusal = fused::refusal,
             .capped = fused::capped},
};

}  // namespace

std::span<const Strategy> strategies() { return all_strategies; }

const Strategy* find_strategy(std::string_view name) {
  const auto* found = std::find_if(all_strategies.begin(), all_strategies.end(),
                                   [&](const Strategy& strategy) { return strategy.name == name; });
  return found == all_strategies.end() ? nullptr : found;
}

Generator generator_of(const Strategy& strategy, SiteKind kind) {
  switch (kind) {
    case SiteKind::ag_gemm: return strategy.ag_gemm;
    case SiteKind::gemm_rs: return strategy.gemm_rs;
  }
  return nullptr;
}

bool applies(const Strategy& strategy, std::span<const SiteKind> kinds) {
  return std::all_of(kinds.begin(), kinds.end(),
                     [&](SiteKind kind) { return generator_of(strategy, kind) != nullptr; });
}

OptionSet relevant_options(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options) {
  OptionSet all;
  for (const SiteKind kind : kinds) {
    const OptionSet here = strategy.relevant(kind, options);
    for (const Option option : all_options) {
      if (here.has(option)) {
        all.add(option);
      }
    }
  }
  return all;
}

StrategyOptions canonical(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options,
                          std::int32_t ranks) {
  StrategyOptions result = strategy.capped == nullptr ? options : strategy.capped(options, ranks);
  const OptionSet relevant = relevant_options(strategy, kinds, result);
  for (const Option option : all_options) {
    if (!relevant.has(option)) {
      put(option, text_of(option, StrategyOptions{}), result);
    }
  }
  return result;
}

std::vector<StrategyOptions> distinct(const Strategy& strategy, std::span<const SiteKind> kinds,
                                      const std::vector<StrategyOptions>& candidates, std::int32_t ranks) {
  std::vector<StrategyOptions> all;
  for (const StrategyOptions& candidate : candidates) {
    const StrategyOptions one = canonical(strategy, kinds, candidate, ranks);
    if (std::find(all.begin(), all.end(), one) == all.end()) {
      all.push_back(one);
    }
  }
  return all;
}

std::string refusal_of(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options,
                       std::int32_t ranks) {
  return strategy.refusal == nullptr ? "" : strategy.refusal(canonical(strategy, kinds, options, ranks), ranks);
}

std::vector<StrategyOptions> schedules_to_prove(const Strategy& strategy, std::span<const SiteKind> kinds,
                                                std::int32_t ranks, const StrategyOptions& base) {
  if (!applies(strategy, kinds)) {
    return {};
  }
  std::vector<StrategyOptions> all = distinct(strategy, kinds, strategy.proved(base), ranks);
  std::erase_if(all,
                [&](const StrategyOptions& options) { return !refusal_of(strategy, kinds, options, ranks).empty(); });
  return all;
}

}  // namespace commfuse
