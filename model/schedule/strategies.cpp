// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/strategies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace commfuse {

namespace {

std::int32_t one(const StrategyOptions&) { return 1; }
std::int32_t two(const StrategyOptions&) { return 2; }
std::int32_t slices(const StrategyOptions& options) { return options.slices; }
std::int32_t sub_slices(const StrategyOptions& options) { return options.sub_slices; }

Done fuse_ag(const Stage& stage, const StrategyOptions& options) {
  return options.form == Form::ring ? fuse_ag_ring(stage, options) : fuse_ag_direct(stage, options);
}

Done fuse_rs(const Stage& stage, const StrategyOptions& options) {
  return options.form == Form::ring ? fuse_rs_ring(stage, options) : fuse_rs_direct(stage, options);
}

OptionSet no_options(SiteKind, const StrategyOptions&) { return {}; }
OptionSet slicing_options(SiteKind kind, const StrategyOptions& options) {
  OptionSet set{Option::slices};
  if (kind != SiteKind::mlp_ar && options.slices > 1) {  // slices of all tokens lie together
    set.add(Option::shuffles);
  }
  return set;
}
OptionSet sub_slices_only(SiteKind, const StrategyOptions&) { return {Option::sub_slices}; }
OptionSet group_of_gather(SiteKind kind, const StrategyOptions&) {
  return kind == SiteKind::ag_gemm ? OptionSet{Option::group} : OptionSet{};
}
OptionSet form_options(SiteKind kind, const StrategyOptions& options) {
  OptionSet set{Option::form};
  if (kind == SiteKind::gemm_rs && options.form == Form::ring) {
    set.add(Option::add_lane);
  }
  return set;
}

std::vector<StrategyOptions> only(const StrategyOptions& base, OptionSet) { return {base}; }
std::vector<StrategyOptions> only_this(const StrategyOptions& base) { return {base}; }

std::vector<StrategyOptions> slice_counts(const StrategyOptions& base, OptionSet fixed) {
  return expanded({base}, fixed, Option::slices, &StrategyOptions::slices, {2, 4, 8});
}
std::vector<StrategyOptions> all_slicings(const StrategyOptions& base) {
  return expanded(expanded({base}, {}, Option::slices, &StrategyOptions::slices, {1, 2, 4, 8}), {}, Option::shuffles,
                  &StrategyOptions::shuffles, {Shuffles::strided, Shuffles::copied});
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
  return all;
}
std::vector<StrategyOptions> all_forms(const StrategyOptions& base) { return forms(base, {}); }

std::string nothing(const StrategyOptions&) { return {}; }
std::string bound(const StrategyOptions& options) { return fmt::format("bound, m={}", options.sub_slices); }
std::string slicing_in_words(const StrategyOptions& options) {
  return fmt::format("k={}{}", options.slices, options.shuffles == Shuffles::copied ? ", copied" : "");
}
std::string group_in_words(const StrategyOptions& options) { return fmt::format("g={}", options.group); }
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
             .mlp_ar = serial_mlp_ar,
             .relevant = no_options,
             .tried = only,
             .proved = only_this,
             .describe = nothing},
    Strategy{.name = "sliced",
             .summary = "k slices, the collective of one under the product of another (CoC, Megatron)",
             .exposed = "the first gather or the last scatter, k latencies",
             .source = "Ascend MindSpeed CoC (copied); Megatron-Core tp_comm_overlap, pipelined chunks (strided)",
             .uses = {Option::slices, Option::shuffles},
             .cuts = slices,
             .ag_gemm = sliced_ag_gemm,
             .gemm_rs = sliced_gemm_rs,
             .mlp_ar = sliced_mlp_ar,
             .relevant = slicing_options,
             .tried = slice_counts,
             .proved = all_slicings,
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
             .summary = "ranks-1 point-to-point steps, each under one partial product (FuseAG, FuseRS)",
             .exposed = "nothing while a step is no longer than a partial product",
             .source = "CommFuse, arXiv 2604.24013, algorithms 1 and 2",
             .uses = {Option::form, Option::add_lane},
             .cuts = one,
             .ag_gemm = fuse_ag,
             .gemm_rs = fuse_rs,
             .relevant = form_options,
             .tried = forms,
             .proved = all_forms,
             .describe = form_in_words},
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
    case SiteKind::gemm_rs: return strategy.gemm_rs;
    case SiteKind::mlp_ar: return strategy.mlp_ar;
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

std::vector<StrategyOptions> distinct(const Strategy& strategy, std::span<const SiteKind> kinds,
                                      const std::vector<StrategyOptions>& candidates) {
  std::vector<StrategyOptions> all;
  for (StrategyOptions candidate : candidates) {
    const OptionSet relevant = relevant_options(strategy, kinds, candidate);
    for (const Option option : all_options) {
      if (!relevant.has(option)) {
        put(option, text_of(option, StrategyOptions{}), candidate);
      }
    }
    if (std::find(all.begin(), all.end(), candidate) == all.end()) {
      all.push_back(candidate);
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
