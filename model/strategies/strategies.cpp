// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/strategies.h"

#include <fmt/format.h>

#include <algorithm>

namespace commfuse {

bool Strategy::takes(Option option) const {
  return uses.has(option) || std::any_of(own_options.begin(), own_options.end(),
                                         [&](const DescribedOption& entry) { return own_option(entry) == option; });
}

const Strategy* find_strategy(std::string_view name) {
  const auto* match = std::find_if(all_strategies.begin(), all_strategies.end(),
                                   [&](const Strategy* strategy) { return strategy->name == name; });
  return match == all_strategies.end() ? nullptr : *match;
}

Generator generator_of(const Strategy& strategy, SiteKind kind) {
  switch (kind) {
    case SiteKind::ag_gemm: return strategy.ag_gemm;
    case SiteKind::gemm_rs:
    case SiteKind::attention_rs: return strategy.gemm_rs;
    case SiteKind::gemm_a2a: return strategy.gemm_a2a;
    case SiteKind::attention_a2a: return strategy.attention_a2a;
    case SiteKind::gemm_ar: return strategy.gemm_ar;
    case SiteKind::mlp_ar: return strategy.mlp_ar;
    case SiteKind::ag_gemm_backward: return strategy.ag_gemm_backward;
    case SiteKind::gemm_rs_backward: return strategy.gemm_rs_backward;
    case SiteKind::weight_ag_gemm: return strategy.weight_ag_gemm;
    case SiteKind::gradient_rs: return strategy.gradient_rs;
  }
  return nullptr;
}

bool applies(const Strategy& strategy, std::span<const SiteKind> kinds) {
  return std::all_of(kinds.begin(), kinds.end(),
                     [&](SiteKind kind) { return generator_of(strategy, kind) != nullptr; });
}

namespace {

/// Returns the relevant options at one kind of site: attention_rs is a gemm_rs preceded by the attention core;
/// all-to-alls have one form.
OptionSet relevant_at(const Strategy& strategy, SiteKind kind, const StrategyOptions& options) {
  const bool attends = kind == SiteKind::attention_rs || kind == SiteKind::attention_a2a;
  if (!attends && kind != SiteKind::gemm_a2a) {
    return strategy.relevant(kind, options);
  }
  OptionSet set;
  if (kind == SiteKind::attention_rs) {
    set = strategy.relevant(SiteKind::gemm_rs, options);
    for (const Option option : all_options()) {
      if (options.attention != AttentionCut::whole && entry_of(option).needs_whole_attention) {
        set.drop(option);
      }
    }
  } else if (strategy.takes(Option::slices)) {
    set.add(Option::slices);
  }
  const bool nested = set.has(Option::inner) && options.inner > 1;
  if (attends && !nested && strategy.takes(Option::attention)) {
    set.add(Option::attention);
  }
  return set;
}

}  // namespace

OptionSet relevant_options(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options) {
  OptionSet relevant;
  for (const SiteKind kind : kinds) {
    const OptionSet at_kind = relevant_at(strategy, kind, options);
    for (const Option option : all_options()) {
      if (at_kind.has(option)) {
        relevant.add(option);
      }
    }
  }
  return relevant;
}

std::int32_t cuts_of(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options) {
  StrategyOptions effective = options;
  if (!relevant_options(strategy, kinds, options).has(Option::slices)) {
    effective.slices = 1;
  }
  return strategy.cuts(effective);
}

std::string parameters_of(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options) {
  OptionSet relevant = relevant_options(strategy, kinds, options);
  StrategyOptions described = options;
  std::vector<std::string> words;
  if (relevant.has(Option::attention) && options.attention != AttentionCut::whole) {
    words.emplace_back(options.attention == AttentionCut::by_query ? "by query" : "zig-zag");
  }
  if (relevant.has(Option::regather) && options.regather == Regather::saved) {
    words.emplace_back("x saved");
  }
  const bool of_gradients = std::find(kinds.begin(), kinds.end(), SiteKind::gemm_rs_backward) != kinds.end();
  if (relevant.has(Option::sum) && of_gradients) {
    if (options.sum == Sum::arrival) {
      words.emplace_back("dw by shard");
    }
    described.sum = Sum::end;  // already described by the words above
  }
  relevant.drop(Option::attention);
  relevant.drop(Option::regather);
  if (relevant != OptionSet{}) {
    words.insert(words.begin(), strategy.describe(described));
  }
  std::erase(words, "");
  return fmt::format("{}", fmt::join(words, ", "));
}

StrategyOptions canonical(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options,
                          std::int32_t ranks) {
  StrategyOptions result = strategy.capped == nullptr ? options : strategy.capped(options, ranks);
  const OptionSet relevant = relevant_options(strategy, kinds, result);
  for (const Option option : all_options()) {
    if (!relevant.has(option)) {
      put(option, text_of(option, StrategyOptions{}), result);
    }
  }
  return result;
}

std::vector<StrategyOptions> distinct(const Strategy& strategy, std::span<const SiteKind> kinds,
                                      const std::vector<StrategyOptions>& candidates, std::int32_t ranks) {
  std::vector<StrategyOptions> schedules;
  for (const StrategyOptions& candidate : candidates) {
    const StrategyOptions schedule = canonical(strategy, kinds, candidate, ranks);
    if (std::find(schedules.begin(), schedules.end(), schedule) == schedules.end()) {
      schedules.push_back(schedule);
    }
  }
  return schedules;
}

std::string refusal_of(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options,
                       std::int32_t ranks) {
  return strategy.refusal == nullptr ? "" : strategy.refusal(canonical(strategy, kinds, options, ranks), ranks);
}

namespace {

/// Returns the schedules that are possible on this many ranks, each once.
std::vector<StrategyOptions> possible(const Strategy& strategy, std::span<const SiteKind> kinds, std::int32_t ranks,
                                      const std::vector<StrategyOptions>& candidates) {
  std::vector<StrategyOptions> schedules = distinct(strategy, kinds, candidates, ranks);
  std::erase_if(schedules,
                [&](const StrategyOptions& options) { return !refusal_of(strategy, kinds, options, ranks).empty(); });
  return schedules;
}

}  // namespace

std::vector<StrategyOptions> schedules_to_try(const Strategy& strategy, std::span<const SiteKind> kinds,
                                              std::int32_t ranks, const StrategyOptions& base) {
  return applies(strategy, kinds) ? possible(strategy, kinds, ranks, strategy.variants(base))
                                  : std::vector<StrategyOptions>{};
}

std::vector<StrategyOptions> schedules_to_prove(const Strategy& strategy, std::span<const SiteKind> kinds,
                                                std::int32_t ranks, const StrategyOptions& base) {
  return applies(strategy, kinds) ? possible(strategy, kinds, ranks, strategy.proved(base))
                                  : std::vector<StrategyOptions>{};
}

}  // namespace commfuse
