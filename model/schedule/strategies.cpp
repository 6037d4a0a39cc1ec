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

std::vector<StrategyOptions> only(const StrategyOptions& fixed) { return {fixed}; }

std::vector<StrategyOptions> slice_counts(const StrategyOptions& fixed) {
  std::vector<StrategyOptions> all;
  for (const std::int32_t count : {2, 4, 8}) {
    all.push_back(fixed);
    all.back().slices = count;
  }
  return all;
}

std::vector<StrategyOptions> forms(const StrategyOptions& fixed) {
  StrategyOptions ring = fixed;
  ring.form = Form::ring;
  ring.add_lane = LaneKind::compute;
  StrategyOptions ring_aux = ring;
  ring_aux.add_lane = LaneKind::aux;
  StrategyOptions direct = ring;
  direct.form = Form::direct;
  return {ring, ring_aux, direct};
}

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
             .cuts = one,
             .ag_gemm = serial_ag_gemm,
             .gemm_rs = serial_gemm_rs,
             .variants = only,
             .describe = nothing},
    Strategy{.name = "sliced",
             .summary = "k slices, the collective of one under the product of another (CoC, Megatron)",
             .exposed = "the first gather or the last scatter, k latencies",
             .uses_slices = true,
             .cuts = slices,
             .ag_gemm = sliced_ag_gemm,
             .gemm_rs = sliced_gemm_rs,
             .variants = slice_counts,
             .describe = slices_in_words},
    Strategy{.name = "commfuse",
             .summary = "ranks-1 point-to-point steps, each under one partial product (FuseAG, FuseRS)",
             .exposed = "nothing while a step is no longer than a partial product",
             .uses_form = true,
             .cuts = one,
             .ag_gemm = fuse_ag,
             .gemm_rs = fuse_rs,
             .variants = forms,
             .describe = form_in_words},
};

}  // namespace

std::span<const Strategy> strategies() { return all_strategies; }

const Strategy* find_strategy(std::string_view name) {
  const auto* found = std::find_if(all_strategies.begin(), all_strategies.end(),
                                   [&](const Strategy& strategy) { return strategy.name == name; });
  return found == all_strategies.end() ? nullptr : found;
}

std::string_view name_of(Form form) { return form == Form::ring ? "ring" : "direct"; }

std::optional<Form> form_named(std::string_view name) {
  for (const Form form : {Form::ring, Form::direct}) {
    if (name_of(form) == name) {
      return form;
    }
  }
  return std::nullopt;
}

}  // namespace commfuse
