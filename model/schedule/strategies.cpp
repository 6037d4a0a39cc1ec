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
OptionSet form_options(SiteKind kind, const StrategyOptions& options) {
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
/// The column-parallel backward pass is not sliced.
OptionSet slices_where_sliced(SiteKind kind, const StrategyOptions&) {
  return kind == SiteKind::ag_gemm_backward ? OptionSet{} : OptionSet{Option::slices};
}

template <std::vector<StrategyOptions> (*others)(const StrategyOptions&)>
std::vector<StrategyOptions> both_regathers(const StrategyOptions& base) {
  return expanded(others(base), {}, Option::regather, &StrategyOptions::regather, {Regather::again, Regather::saved});
}

std::vector<StrategyOptions> only(const StrategyOptions& base, OptionSet) { return {base}; }
std::vector<StrategyOptions> only_this(const StrategyOptions& base) { return {base}; }

std::vector<StrategyOptions> slice_counts(const StrategyOptions& base, OptionSet fixed) {
  return expanded({base}, fixed, Option::slices, &StrategyOptions::slices, {2, 4, 8});
}
std::vector<StrategyOptions> all_slice_counts(const StrategyOptions& base) {
  return expanded({base}, {}, Option::slices, &StrategyOptions::slices, {1, 2, 4, 8});
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
  return expanded(all, fixed, Option::sum, &StrategyOptions::sum, {Sum::end, Sum::arrival});
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
             .uses = {Option::regather},
             .cuts = one,
             .ag_gemm = serial_ag_gemm,
             .gemm_rs = serial_gemm_rs,
             .ag_gemm_backward = serial_ag_gemm_backward,
             .gemm_rs_backward = serial_gemm_rs_backward,
             .weight_ag_gemm = serial_weight_ag_gemm,
             .gradient_rs = serial_gradient_rs,
             .relevant = with_regather<no_options>,
             .tried = only,
             .proved = both_regathers<only_this>,
             .describe = nothing},
    Strategy{.name = "sliced",
             .summary = "k slices, the collective of one under the product of another (CoC, Megatron)",
             .exposed = "the first gather or the last scatter, k latencies",
             .source = "Ascend MindSpeed CoC; Megatron-Core tp_comm_overlap, pipelined chunks",
             .uses = {Option::slices, Option::regather},
             .cuts = slices,
             .ag_gemm = sliced_ag_gemm,
             .gemm_rs = sliced_gemm_rs,
             .ag_gemm_backward = sliced_ag_gemm_backward,
             .gemm_rs_backward = sliced_gemm_rs_backward,
             .weight_ag_gemm = sliced_weight_ag_gemm,
             .gradient_rs = sliced_gradient_rs,
             .relevant = with_regather<slices_where_sliced>,
             .tried = slice_counts,
             .proved = both_regathers<all_slice_counts>,
             .describe = slices_in_words},
    Strategy{.name = "commfuse",
             .summary = "ranks-1 point-to-point steps, each under one partial product (FuseAG, FuseRS)",
             .exposed = "nothing while a step is no longer than a partial product",
             .source = "CommFuse, arXiv 2604.24013, algorithms 1 and 2",
             .uses = {Option::form, Option::add_lane, Option::sum, Option::regather},
             .cuts = one,
             .ag_gemm = fuse_ag,
             .gemm_rs = fuse_rs,
             .ag_gemm_backward = fuse_ag_gemm_backward,
             .gemm_rs_backward = fuse_gemm_rs_backward,
             .weight_ag_gemm = fuse_weight_ag_gemm,
             .gradient_rs = fuse_gradient_rs,
             .relevant = with_regather<form_options>,
             .tried = forms,
             .proved = both_regathers<all_forms>,
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
    case SiteKind::gemm_rs: return strategy.gemm_rs;
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
  own.drop(Option::regather);
  if (own != OptionSet{}) {
    words.insert(words.begin(), strategy.describe(here));
  }
  std::erase(words, "");
  return fmt::format("{}", fmt::join(words, ", "));
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
