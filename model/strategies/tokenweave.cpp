// SPDX-License-Identifier: Apache-2.0
// TokenWeave (arXiv 2505.11329; microsoft/tokenweave, tokenweave_overlap): the tokens are split into two halves, and
// the all-reduce of one half runs under the MLP of the other half. The all-reduce contains the residual and the norm:
// it is a reduce-scatter, residual and norm on the rank's own rows, and an all-gather. Two MLPs A and B, halves 0 and
// 1:
//
//   compute  |A0       |A1       |B0       |B1       |
//   aux               n         n         n         n           residual and norm of 1/N of a half
//   comm               |rs  ag  |rs  ag  |rs  ag  |rs  ag|      the last one is the tail
//
// With m one half's MLP, f its reduce-scatter, residual, norm and all-gather together, and b blocks: makespan
// m + (2b-1) max(m, f) + f.
//
// In the paper, the all-reduce is one kernel with NVSwitch multicast on 8 to 32 SMs. Without an implementation, the
// parts of the all-reduce are priced one by one, with the machine's own collectives (model/cost/implemented.h has the
// kernel).
#include "model/strategies/mlp_block.h"
#include "model/strategies/strategies.h"
#include "model/strategies/strategy_parts.h"

namespace commfuse {

namespace {

Done tokenweave_mlp_ar(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const std::int32_t ranks = stage.ranks;
  const std::int32_t halves = stage.cuts;
  const MlpBlock block(stage);
  if (stage.ranks == 1) {
    return block.alone();
  }
  const BufferId reduced = stage.scratch("reduced", halves, stage.added);
  const BufferId normed = stage.scratch("normed", halves, stage.output);
  // True if the previous block was split in the same way.
  const bool woven = stage.ready.size() == static_cast<std::size_t>(halves);
  Done done;
  for (std::int32_t half = 0; half < halves; ++half) {
    const std::int32_t first = half * ranks;
    block.activate(first, ranks, woven ? std::vector{stage.ready[static_cast<std::size_t>(half)]} : stage.ready);
    const OpId multiplied = block.multiply(first, ranks);
    const Region own_rows = builder.rows_of(reduced, half);
    const OpId scattered = builder.collective({.kind = CollectiveKind::reduce_scatter,
                                               .axis = stage.axis,
                                               .in = {block.partial(first, ranks)},
                                               .out = {own_rows},
                                               .wire = builder.buffer_of(reduced).dtype,
                                               .waits = {multiplied}});
    const Region normed_own = builder.rows_of(normed, half);
    const OpId ended = block.add_and_norm({LaneKind::aux, 0}, own_rows, along(builder.mesh(), stage.axis) + first,
                                          normed_own, {scattered});
    done.push_back(builder.collective({.kind = CollectiveKind::all_gather,
                                       .axis = stage.axis,
                                       .in = {normed_own},
                                       .out = {builder.rows_of(stage.output, first, ranks)},
                                       .wire = options.dtype,
                                       .waits = {ended}}));
  }
  return done;
}

std::int32_t two_halves(const StrategyOptions&) { return 2; }

}  // namespace

constexpr Strategy tokenweave_strategy{
    .name = "tokenweave",
    .summary = "two halves of the tokens; the all-reduce of one under the MLP of the other",
    .exposed = "the all-reduce of the last half",
    .source = "TokenWeave, arXiv 2505.11329",
    .cuts = two_halves,
    .mlp_ar = tokenweave_mlp_ar,
    .relevant = parts::no_options,
    .tried = parts::only,
    .proved = parts::only_this,
    .describe = parts::nothing,
};

}  // namespace commfuse
