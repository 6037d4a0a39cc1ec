// SPDX-License-Identifier: Apache-2.0
// The bound for kernels that do their own communication (Flux, TileLink, cuBLASMp): one GEMM kernel per site, whose
// tiles are loaded from, or stored to, other ranks while it runs. No implementation reaches this bound. Slicing costs
// the GEMM nothing: every part takes its share of the whole kernel's time. The kernel's data move directly to their
// destination at the highest rate, without launch, latency or SMs, and sums take no time. 4 ranks, seen from rank r;
// each shard consists of m blocks (sub_slices) that move and are multiplied one by one:
//
//   ag_gemm   compute  |x[r]    :x[r-1]  :x[r-2]  :x[r-3] |
//             kernel   |-> r+1  |-> r+2  |-> r+3  |
//
//   gemm_rs   compute  |p[r+1]  :p[r+2]  :p[r+3]  :p[r]    |
//             kernel    |-> r+1  |-> r+2  |-> r+3  |
//
// With the times C of the kernel and T of the transfers of N-1 shards together, the makespan is max(C, T + C/(N m)),
// and C for one rank.
#include <fmt/format.h>

#include "model/strategies/partials_to_owners.h"
#include "model/strategies/strategies.h"
#include "model/strategies/strategy_parts.h"

namespace commfuse {

namespace {

constexpr Lane in_kernel{LaneKind::kernel, 0};

Done fused_kernel_ag_gemm(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const std::int32_t ranks = stage.ranks;
  const std::int32_t cuts = stage.cuts;
  const BufferId gathered = ranks > 1 ? stage.scratch("gathered", (ranks - 1) * cuts, stage.input) : stage.input;
  struct Part {
    std::int32_t step = 0;
    std::int32_t block = 0;
  };
  const auto multiply = [&](const Part& part, const Region& input, const std::vector<OpId>& arrived) {
    const Index shard = along(builder.mesh(), stage.axis, -part.step) * cuts;
    return builder.gemm({.a = {input},
                         .b = {builder.whole(stage.weight)},
                         .out = {builder.rows_of(stage.output, shard + part.block)},
                         .waits = arrived,
                         .kernel_rows = ranks * cuts});
  };
  OpId last{};
  for (std::int32_t block = 0; block < cuts; ++block) {
    last = multiply({.block = block}, builder.rows_of(stage.input, block), stage.ready);
  }
  for (std::int32_t step = 1; step < ranks; ++step) {
    for (std::int32_t block = 0; block < cuts; ++block) {
      const Region received = builder.rows_of(gathered, (step - 1) * cuts + block);
      const OpId arrived = builder.exchange({.lane = in_kernel,
                                             .axis = stage.axis,
                                             .shift = step,
                                             .send = {builder.rows_of(stage.input, block)},
                                             .receive = {received},
                                             .wire = options.dtype,
                                             .waits = step + block == 1 ? stage.ready : std::vector<OpId>{}});
      last = multiply({.step = step, .block = block}, received, {arrived});
    }
  }
  return {last};
}

Done fused_kernel_gemm_rs(const Stage& stage, const StrategyOptions&) {
  return partials_to_owners(stage, {.transfers = in_kernel, .sum = in_kernel, .one_kernel = true});
}

std::int32_t sub_slices(const StrategyOptions& options) { return options.sub_slices; }
OptionSet sub_slices_only(SiteKind, const StrategyOptions&) { return {Option::sub_slices}; }

std::vector<StrategyOptions> sub_slice_counts(const StrategyOptions& base, OptionSet fixed) {
  return expanded({base}, fixed, Option::sub_slices, &StrategyOptions::sub_slices, {8, 4, 2, 1});
}
std::vector<StrategyOptions> all_sub_slice_counts(const StrategyOptions& base) { return sub_slice_counts(base, {}); }

std::string bound(const StrategyOptions& options) { return fmt::format("bound, m={}", options.sub_slices); }

}  // namespace

constexpr Strategy fused_kernel_strategy{
    .name = "fused_kernel",
    .summary = "bound: one kernel per site moves its own tiles; no implementation reaches it",
    .exposed = "max(0, total transfer time - kernel)",
    .source = "the goal of Flux, TileLink and cuBLASMp",
    .bound = true,
    .uses = {Option::sub_slices},
    .cuts = sub_slices,
    .ag_gemm = fused_kernel_ag_gemm,
    .gemm_rs = fused_kernel_gemm_rs,
    .relevant = sub_slices_only,
    .tried = sub_slice_counts,
    .proved = all_sub_slice_counts,
    .describe = bound,
};

}  // namespace commfuse
