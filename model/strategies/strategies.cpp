// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/strategies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/strategies/commfuse.h"

namespace commfuse {

namespace {

std::int32_t one(const StrategyOptions&) { return 1; }
std::int32_t two(const StrategyOptions&) { return 2; }
std::int32_t slices(const StrategyOptions& options) { return options.slices; }
std::int32_t sub_slices(const StrategyOptions& options) { return options.sub_slices; }

OptionSet no_options(SiteKind, const StrategyOptions&) { return {}; }
OptionSet slicing_options(SiteKind kind, const StrategyOptions& options) {
  if (kind == SiteKind::ag_gemm_backward) {
    return {};  // not sliced
  }
  const bool forward = kind == SiteKind::ag_gemm || kind == SiteKind::gemm_rs;
  return forward && options.slices > 1 ? OptionSet{Option::slices, Option::shuffles} : OptionSet{Option::slices};
}
OptionSet sub_slices_only(SiteKind, const StrategyOptions&) { return {Option::sub_slices}; }
OptionSet group_of_gather(SiteKind kind, const StrategyOptions&) {
  return kind == SiteKind::ag_gemm ? OptionSet{Option::group} : OptionSet{};
}
/// At sites that have no more than two forms.
OptionSet two_forms(SiteKind kind, const StrategyOptions& options) {
  OptionSet set{Option::form};
  const bool adds = kind == SiteKind::gemm_rs || kind == SiteKind::ag_gemm_backward || kind == SiteKind::gradient_rs;
  if (adds && options.form == Form::ring) {
    set.add(Option::add_lane);
  }
  if (kind == SiteKind::gemm_rs_backward) {
    set.add(Option::sum);
  }
  return set;
}

/// The backward pass of a column-parallel product needs its input gathered, whatever the strategy.
template <OptionSet (*others)(SiteKind, const StrategyOptions&)>
OptionSet with_regather(SiteKind kind, const StrategyOptions& options) {
  OptionSet set = others(kind, options);
  if (kind == SiteKind::ag_gemm_backward) {
    set.add(Option::regather);
  }
  return set;
}

template <std::vector<StrategyOptions> (*others)(const StrategyOptions&)>
std::vector<StrategyOptions> both_regathers(const StrategyOptions& base) {
  return expanded(others(base), {}, Option::regather, &StrategyOptions::regather, {Regather::again, Regather::saved});
}

std::vector<StrategyOptions> only(const StrategyOptions& base, OptionSet) { return {base}; }
std::vector<StrategyOptions> only_this(const StrategyOptions& base) { return {base}; }

/// The same schedules, each with the attention core cut in every way.
std::vector<StrategyOptions> in_all_cuts(const std::vector<StrategyOptions>& candidates, OptionSet fixed) {
  return expanded(candidates, fixed, Option::attention, &StrategyOptions::attention,
                  {AttentionCut::whole, AttentionCut::by_query, AttentionCut::zigzag});
}

/// Rings with either sum: it makes a difference to the gradients of row-parallel products.
std::vector<StrategyOptions> in_both_sums(const std::vector<StrategyOptions>& candidates, OptionSet fixed) {
  std::vector<StrategyOptions> all;
  for (const StrategyOptions& one : candidates) {
    const std::vector<StrategyOptions> sums =
        one.form == Form::direct ? std::vector{one}
                                 : expanded({one}, fixed, Option::sum, &StrategyOptions::sum, {Sum::end, Sum::arrival});
    all.insert(all.end(), sums.begin(), sums.end());
  }
  return all;
}

std::vector<StrategyOptions> slice_counts(const StrategyOptions& base, OptionSet fixed) {
  // Every slice holds queries from all over the sequence: zig-zag would balance nothing.
  return expanded(expanded({base}, fixed, Option::slices, &StrategyOptions::slices, {2, 4, 8}), fixed,
                  Option::attention, &StrategyOptions::attention, {AttentionCut::whole, AttentionCut::by_query});
}
std::vector<StrategyOptions> all_slicings(const StrategyOptions& base) {
  return in_all_cuts(expanded(expanded({base}, {}, Option::slices, &StrategyOptions::slices, {1, 2, 4, 8}), {},
                              Option::shuffles, &StrategyOptions::shuffles, {Shuffles::strided, Shuffles::copied}),
                     {});
}

std::vector<StrategyOptions> sub_slice_counts(const StrategyOptions& base, OptionSet fixed) {
  return expanded({base}, fixed, Option::sub_slices, &StrategyOptions::sub_slices, {8, 4, 2, 1});
}
std::vector<StrategyOptions> all_sub_slice_counts(const StrategyOptions& base) { return sub_slice_counts(base, {}); }

std::vector<StrategyOptions> groups(const StrategyOptions& base, OptionSet fixed) {
  return expanded({base}, fixed, Option::group, &StrategyOptions::group, {1, 2});
}
std::vector<StrategyOptions> all_groups(const StrategyOptions& base) {
  return expanded({base}, {}, Option::group, &StrategyOptions::group, {1, 2, 3});
}

/// The paper's presets, each with the attention core cut in every way and the gradients of a ring summed both ways.
std::vector<StrategyOptions> fused_tried(const StrategyOptions& base, OptionSet fixed) {
  return in_all_cuts(in_both_sums(fused::tried(base, fixed), fixed), fixed);
}
std::vector<StrategyOptions> fused_proved(const StrategyOptions& base) {
  return in_all_cuts(in_both_sums(fused::proved(base), {}), {});
}
OptionSet fused_options(SiteKind kind, const StrategyOptions& options) {
  const bool forward = kind == SiteKind::ag_gemm || kind == SiteKind::gemm_rs;
  return forward ? fused::relevant(kind, options) : two_forms(kind, options);
}
constexpr OptionSet fused_uses() {
  OptionSet set = fused::uses;
  set.add(Option::regather);
  set.add(Option::attention);
  return set;
}

std::string nothing(const StrategyOptions&) { return {}; }
std::string bound(const StrategyOptions& options) { return fmt::format("bound, m={}", options.sub_slices); }
std::string slicing_in_words(const StrategyOptions& options) {
  return fmt::format("k={}{}", options.slices, options.shuffles == Shuffles::copied ? ", copied" : "");
}
std::string group_in_words(const StrategyOptions& options) { return fmt::format("g={}", options.group); }

constexpr std::array all_strategies{
    Strategy{.name = "serial",
             .summary = "the collective, then the product (or the reverse)",
             .exposed = "the whole collective",
             .source = "what every framework does without overlap",
             .uses = {Option::regather},
             .cuts = one,
             .ag_gemm = serial_ag_gemm,
             .gemm_rs = serial_gemm_rs,
             .mlp_ar = serial_mlp_ar,
             .ag_gemm_backward = serial_ag_gemm_backward,
             .gemm_rs_backward = serial_gemm_rs_backward,
             .gemm_a2a = serial_gemm_a2a,
             .attention_a2a = serial_attention_a2a,
             .weight_ag_gemm = serial_weight_ag_gemm,
             .gradient_rs = serial_gradient_rs,
             .relevant = with_regather<no_options>,
             .tried = only,
             .proved = both_regathers<only_this>,
             .describe = nothing},
    Strategy{.name = "sliced",
             .summary = "k slices, the collective of one under the product of another (CoC, Megatron)",
             .exposed = "the first gather or the last scatter, k latencies",
             .source = "Ascend MindSpeed CoC (copied); Megatron-Core tp_comm_overlap, pipelined chunks (strided)",
             .uses = {Option::slices, Option::shuffles, Option::regather, Option::attention},
             .cuts = slices,
             .ag_gemm = sliced_ag_gemm,
             .gemm_rs = sliced_gemm_rs,
             .mlp_ar = sliced_mlp_ar,
             .ag_gemm_backward = sliced_ag_gemm_backward,
             .gemm_rs_backward = sliced_gemm_rs_backward,
             .gemm_a2a = sliced_gemm_a2a,
             .attention_a2a = sliced_attention_a2a,
             .weight_ag_gemm = sliced_weight_ag_gemm,
             .gradient_rs = sliced_gradient_rs,
             .relevant = with_regather<slicing_options>,
             .tried = slice_counts,
             .proved = both_regathers<all_slicings>,
             .describe = slicing_in_words},
    Strategy{.name = "looped_einsum",
             .summary = "a loop that moves a shard while it multiplies one, synchronised every iteration (XLA)",
             .exposed = "what a transfer is longer than a product, every step; one transfer of zeros",
             .source = "Wang et al., ASPLOS 2023; XLA windowed einsum",
             .cuts = one,
             .ag_gemm = looped_einsum_ag_gemm,
             .gemm_rs = looped_einsum_gemm_rs,
             .relevant = no_options,
             .tried = only,
             .proved = only_this,
             .describe = nothing},
    Strategy{.name = "async_tp",
             .summary = "copy engines pull shards from symmetric memory, two streams take turns (PyTorch)",
             .exposed = "what a pull is longer than a product; one more of the two when the ranks are odd",
             .source = "PyTorch async-TP, torch.distributed._symmetric_memory",
             .cuts = one,
             .ag_gemm = async_tp_ag_gemm,
             .gemm_rs = async_tp_gemm_rs,
             .relevant = no_options,
             .tried = only,
             .proved = only_this,
             .describe = nothing},
    Strategy{.name = "ring_exchange",
             .summary = "copy engines pass shards on, one or two a product (TransformerEngine)",
             .exposed = "what a transfer is longer than a product; the first transfer when two go together",
             .source = "TransformerEngine userbuffers, tp_comm_overlap method ring_exchange (g=2: aggregate)",
             .uses = {Option::group},
             .cuts = one,
             .ag_gemm = ring_exchange_ag_gemm,
             .gemm_rs = ring_exchange_gemm_rs,
             .relevant = group_of_gather,
             .tried = groups,
             .proved = all_groups,
             .describe = group_in_words},
    Strategy{.name = "tokenweave",
             .summary = "two halves of the tokens, the all-reduce of one under the MLP of the other",
             .exposed = "the all-reduce of the last half",
             .source = "TokenWeave, arXiv 2505.11329",
             .cuts = two,
             .mlp_ar = tokenweave_mlp_ar,
             .relevant = no_options,
             .tried = only,
             .proved = only_this,
             .describe = nothing},
    Strategy{.name = "commfuse",
             .summary = "ranks-1 point-to-point steps, each under one partial product (FuseAG, FuseRS, FuseA2A)",
             .exposed = "nothing while a step is no longer than a partial product",
             .source = "CommFuse, arXiv 2604.24013, algorithms 1, 2, 4 and 5",
             .uses = fused_uses(),
             .cuts = fused::cuts,
             .ag_gemm = fused::ag_gemm,
             .gemm_rs = fused::gemm_rs,
             .ag_gemm_backward = fuse_ag_gemm_backward,
             .gemm_rs_backward = fuse_gemm_rs_backward,
             .gemm_a2a = fuse_gemm_a2a,
             .attention_a2a = fuse_attention_a2a,
             .weight_ag_gemm = fuse_weight_ag_gemm,
             .gradient_rs = fuse_gradient_rs,
             .relevant = with_regather<fused_options>,
             .tried = fused_tried,
             .proved = both_regathers<fused_proved>,
             .describe = fused::describe,
             .refusal = fused::refusal,
             .capped = fused::capped},
    Strategy{.name = "fused_kernel",
             .summary = "bound: one kernel a site moves its own tiles; no implementation reaches it",
             .exposed = "what all transfers together are longer than the kernel",
             .source = "what Flux, TileLink and cuBLASMp work towards",
             .bound = true,
             .uses = {Option::sub_slices},
             .cuts = sub_slices,
             .ag_gemm = fused_kernel_ag_gemm,
             .gemm_rs = fused_kernel_gemm_rs,
             .relevant = sub_slices_only,
             .tried = sub_slice_counts,
             .proved = all_sub_slice_counts,
             .describe = bound},
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

/// The same at one kind of site: attention_rs is a gemm_rs with its core before it; all-to-alls have one form.
OptionSet relevant_at(const Strategy& strategy, SiteKind kind, const StrategyOptions& options) {
  const bool attends = kind == SiteKind::attention_rs || kind == SiteKind::attention_a2a;
  if (!attends && kind != SiteKind::gemm_a2a) {
    return strategy.relevant(kind, options);
  }
  OptionSet set;
  if (kind == SiteKind::attention_rs) {
    set = strategy.relevant(SiteKind::gemm_rs, options);
    if (options.attention != AttentionCut::whole) {
      set.drop(Option::shuffles);  // rows are made as products ask for them
    }
  } else if (strategy.uses.has(Option::slices)) {
    set.add(Option::slices);
  }
  if (attends && strategy.uses.has(Option::attention) && options.inner == 1) {
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

std::int32_t cuts_of(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options) {
  StrategyOptions here = options;
  if (!relevant_options(strategy, kinds, options).has(Option::slices)) {
    here.slices = 1;
  }
  return strategy.cuts(here);
}

std::string parameters_of(const Strategy& strategy, std::span<const SiteKind> kinds, const StrategyOptions& options) {
  OptionSet own = relevant_options(strategy, kinds, options);
  StrategyOptions here = options;
  std::vector<std::string> words;
  if (own.has(Option::attention) && options.attention != AttentionCut::whole) {
    words.emplace_back(options.attention == AttentionCut::by_query ? "by query" : "zig-zag");
  }
  if (own.has(Option::regather) && options.regather == Regather::saved) {
    words.emplace_back("x saved");
  }
  const bool of_gradients = std::find(kinds.begin(), kinds.end(), SiteKind::gemm_rs_backward) != kinds.end();
  if (own.has(Option::sum) && of_gradients) {
    if (options.sum == Sum::arrival) {
      words.emplace_back("dw by shard");
    }
    here.sum = Sum::end;  // said already
  }
  own.drop(Option::attention);
  own.drop(Option::regather);
  if (own != OptionSet{}) {
    words.insert(words.begin(), strategy.describe(here));
  }
  std::erase(words, "");
  return fmt::format("{}", fmt::join(words, ", "));
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

namespace {

/// Those that give a schedule on so many ranks, each once.
std::vector<StrategyOptions> possible(const Strategy& strategy, std::span<const SiteKind> kinds, std::int32_t ranks,
                                      const std::vector<StrategyOptions>& candidates) {
  std::vector<StrategyOptions> all = distinct(strategy, kinds, candidates, ranks);
  std::erase_if(all,
                [&](const StrategyOptions& options) { return !refusal_of(strategy, kinds, options, ranks).empty(); });
  return all;
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
