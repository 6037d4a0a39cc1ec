// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/strategies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace commfuse {

namespace {

std::int32_t one(const StrategyOptions&) { return 1; }
std::int32_t slices(const StrategyOptions& options) { return options.slices; }

Done fuse_ag(const Stage& stage, const StrategyOptions& options) {
  return options.form == Form::ring ? fuse_ag_ring(stage, options) : fuse_ag_direct(stage, options);
}

Done fuse_rs(const Stage& stage, const StrategyOptions& options) {
  return options.form == Form::ring ? fuse_rs_ring(stage, options) : fuse_rs_direct(stage, options);
}

OptionSet no_options(SiteKind, const StrategyOptions&) { return {}; }
OptionSet slices_only(SiteKind, const StrategyOptions&) { return {Option::slices}; }
OptionSet form_options(SiteKind kind, const StrategyOptions& options) {
  OptionSet set{Option::form};
  if (kind == SiteKind::gemm_rs && options.form == Form::ring) {
    set.add(Option::add_lane);
  }
  return set;
}

std::vector<StrategyOptions> only(const StrategyOptions& base, OptionSet) { return {base}; }
std::vector<StrategyOptions> only_this(const StrategyOptions& base) { return {base}; }

/// The same schedules, each with the attention core cut in every way.
std::vector<StrategyOptions> in_all_cuts(const std::vector<StrategyOptions>& candidates, OptionSet fixed) {
  return expanded(candidates, fixed, Option::attention, &StrategyOptions::attention,
                  {AttentionCut::whole, AttentionCut::by_query, AttentionCut::zigzag});
}

std::vector<StrategyOptions> slice_counts(const StrategyOptions& base, OptionSet fixed) {
  // Every slice holds queries from all over the sequence: zig-zag would balance nothing.
  return expanded(expanded({base}, fixed, Option::slices, &StrategyOptions::slices, {2, 4, 8}), fixed,
                  Option::attention, &StrategyOptions::attention, {AttentionCut::whole, AttentionCut::by_query});
}
std::vector<StrategyOptions> all_slice_counts(const StrategyOptions& base) {
  return in_all_cuts(expanded({base}, {}, Option::slices, &StrategyOptions::slices, {1, 2, 4, 8}), {});
}

std::vector<StrategyOptions> forms(const StrategyOptions& base, OptionSet fixed) {
  std::vector<StrategyOptions> all;
  for (const StrategyOptions& one :
       expanded({base}, fixed, Option::form, &StrategyOptions::form, {Form::ring, Form::direct})) {
    const std::vector<StrategyOptions> lanes =
        one.form == Form::direct
            ? std::vector{one}
            : expanded({one}, fixed, Option::add_lane, &StrategyOptions::add_lane, {LaneKind::compute, LaneKind::aux});
    all.insert(all.end(), lanes.begin(), lanes.end());
  }
  return in_all_cuts(all, fixed);
}
std::vector<StrategyOptions> all_forms(const StrategyOptions& base) { return forms(base, {}); }

std::string nothing(const StrategyOptions&) { return {}; }
std::string slices_in_words(const StrategyOptions& options) { return fmt::format("k={}", options.slices); }
std::string form_in_words(const StrategyOptions& options) {
  if (options.form == Form::ring && options.add_lane == LaneKind::aux) {
    return "ring, add on aux";
  }
  return std::string{name_of(options.form)};
}

constexpr std::array all_strategies{
    Strategy{.name = "serial",
             .summary = "the collective, then the product (or the reverse)",
             .exposed = "the whole collective",
             .source = "what every framework does without overlap",
             .cuts = one,
             .ag_gemm = serial_ag_gemm,
             .gemm_rs = serial_gemm_rs,
             .gemm_a2a = serial_gemm_a2a,
             .attention_a2a = serial_attention_a2a,
             .relevant = no_options,
             .tried = only,
             .proved = only_this,
             .describe = nothing},
    Strategy{.name = "sliced",
             .summary = "k slices, the collective of one under the product of another (CoC, Megatron)",
             .exposed = "the first gather or the last scatter, k latencies",
             .source = "Ascend MindSpeed CoC; Megatron-Core tp_comm_overlap, pipelined chunks",
             .uses = {Option::slices, Option::attention},
             .cuts = slices,
             .ag_gemm = sliced_ag_gemm,
             .gemm_rs = sliced_gemm_rs,
             .gemm_a2a = sliced_gemm_a2a,
             .attention_a2a = sliced_attention_a2a,
             .relevant = slices_only,
             .tried = slice_counts,
             .proved = all_slice_counts,
             .describe = slices_in_words},
    Strategy{.name = "commfuse",
             .summary = "ranks-1 point-to-point steps, each under one partial product (FuseAG, FuseRS, FuseA2A)",
             .exposed = "nothing while a step is no longer than a partial product",
             .source = "CommFuse, arXiv 2604.24013, algorithms 1, 2, 4 and 5",
             .uses = {Option::form, Option::add_lane, Option::attention},
             .cuts = one,
             .ag_gemm = fuse_ag,
             .gemm_rs = fuse_rs,
             .gemm_a2a = fuse_gemm_a2a,
             .attention_a2a = fuse_attention_a2a,
             .relevant = form_options,
             .tried = forms,
             .proved = all_forms,
             .describe = form_in_words},
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
    case SiteKind::gemm_rs:
    case SiteKind::attention_rs: return strategy.gemm_rs;
    case SiteKind::gemm_a2a: return strategy.gemm_a2a;
    case SiteKind::attention_a2a: return strategy.attention_a2a;
  }
  return nullptr;
}

bool applies(const Strategy& strategy, std::span<const SiteKind> kinds) {
  return std::all_of(kinds.begin(), kinds.end(),
                     [&](SiteKind kind) { return generator_of(strategy, kind) != nullptr; });
}

namespace {

/// The same at one kind of site: attention_rs is a gemm_rs with its core before it; all-to-alls have one form.
OptionSet relevant_at(const Strategy& strategy, SiteKind kind, const StrategyOptions& options) {
  OptionSet set;
  if (kind == SiteKind::attention_rs) {
    set = strategy.relevant(SiteKind::gemm_rs, options);
  } else if (kind == SiteKind::ag_gemm || kind == SiteKind::gemm_rs) {
    return strategy.relevant(kind, options);
  } else if (strategy.uses.has(Option::slices)) {
    set.add(Option::slices);
  }
  if (kind != SiteKind::gemm_a2a && strategy.uses.has(Option::attention)) {
    set.add(Option::attention);
  }
  return set;
}

}  // namespace

OptionSet relevant_options(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options) {
  OptionSet all;
  for (const SiteKind kind : kinds) {
    const OptionSet here = relevant_at(strategy, kind, options);
    for (const Option option : all_options) {
      if (here.has(option)) {
        all.add(option);
      }
    }
  }
  return all;
}

std::string parameters_of(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options) {
  OptionSet own = relevant_options(strategy, kinds, options);
  const AttentionCut cut = own.has(Option::attention) ? options.attention : AttentionCut::whole;
  own.drop(Option::attention);
  std::string words = own == OptionSet{} ? "" : strategy.describe(options);
  if (cut != AttentionCut::whole) {
    words += words.empty() ? "" : ", ";
    words += cut == AttentionCut::by_query ? "by query" : "zig-zag";
  }
  return words;
}

StrategyOptions canonical(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options) {
  StrategyOptions result = options;
  const OptionSet relevant = relevant_options(strategy, kinds, options);
  for (const Option option : all_options) {
    if (!relevant.has(option)) {
      put(option, text_of(option, StrategyOptions{}), result);
    }
  }
  return result;
}

std::vector<StrategyOptions> distinct(const Strategy& strategy, std::span<const SiteKind> kinds,
                                      const std::vector<StrategyOptions>& candidates) {
  std::vector<StrategyOptions> all;
  for (const StrategyOptions& candidate : candidates) {
    const StrategyOptions one = canonical(strategy, kinds, candidate);
    if (std::find(all.begin(), all.end(), one) == all.end()) {
      all.push_back(one);
    }
  }
  return all;
}

std::vector<StrategyOptions> schedules_to_prove(const Strategy& strategy, std::span<const SiteKind> kinds,
                                                std::int32_t ranks, const StrategyOptions& base) {
  if (!applies(strategy, kinds)) {
    return {};
  }
  std::vector<StrategyOptions> all = distinct(strategy, kinds, strategy.proved(base));
  std::erase_if(all, [&](const StrategyOptions& options) {
    return strategy.refusal != nullptr && !strategy.refusal(options, ranks).empty();
  });
  return all;
}

}  // namespace commfuse
