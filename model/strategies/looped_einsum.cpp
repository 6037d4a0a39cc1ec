// SPDX-License-Identifier: Apache-2.0
// Looped collective einsum (Wang et al., ASPLOS 2023, which became XLA's windowed einsum or collective matmul), one way
// round: a loop whose every iteration moves one shard and multiplies one. An iteration ends when both have ended, and
// the next starts then. 4 ranks, seen from rank r; = is the loop's synchronisation:
//
//   ag_gemm   compute  |x[r]      =|x[r-1]    =|x[r-2]    =|x[r-3] |
//             comm     |x[r] ->   =|x[r-1] -> =|x[r-2] -> =|
//
//   gemm_rs   compute  |p[r-1]  +=|p[r-2]  +=|p[r-3]  +=|p[r]  +|
//             comm     |0 ->     =|m[r-1] ->=|m[r-2] ->=|m[r-3] ->|
//
// The accumulator of gemm_rs begins as zeros and is sent at the start of every iteration, even of the first; the
// partial product is added at the iteration's end. GEMM c, transfer p, add a, zeroing z: makespan c + (N-1) max(c, p)
// for ag_gemm, z + N (max(c, p) + a) for gemm_rs.
#include <algorithm>

#include "model/strategies/strategies.h"
#include "model/strategies/strategy_parts.h"

namespace commfuse {

namespace {

Done looped_einsum_ag_gemm(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const std::int32_t windows = std::min(stage.ranks - 1, 2);
  const BufferId window = windows > 0 ? stage.scratch("window", windows, stage.input) : stage.input;
  Operand current{builder.whole(stage.input)};
  std::vector<OpId> ready = stage.ready;  // ops that end the previous iteration
  Done done;
  for (std::int32_t step = 0; step < stage.ranks; ++step) {
    std::vector<OpId> ends;
    const Operand next{builder.rows_of(window, windows > 1 ? step % 2 : 0)};
    if (step + 1 < stage.ranks) {
      ends = {builder.exchange(
          {.axis = stage.axis, .shift = 1, .send = current, .receive = next, .wire = options.dtype, .waits = ready})};
    }
    done = {builder.gemm({.a = current,
                          .b = {builder.whole(stage.weight)},
                          .out = {builder.rows_of(stage.output, along(builder.mesh(), stage.axis, -step))},
                          .waits = ready})};
    ends.push_back(done.front());
    ready = ends;
    current = next;
  }
  return done;
}

Done looped_einsum_gemm_rs(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const auto product = [&](std::int32_t step, const Region& out, const std::vector<OpId>& waits) {
    const Index shard = along(builder.mesh(), stage.axis, -1 - step);
    return builder.gemm(
        {.a = {builder.rows_of(stage.input, shard)}, .b = {builder.whole(stage.weight)}, .out = {out}, .waits = waits});
  };
  if (stage.ranks == 1) {
    return {product(0, builder.whole(stage.output), stage.ready)};
  }
  const BufferId accumulator = stage.scratch("accumulator", 2, stage.output);
  const BufferId partial = stage.scratch("partial", 1, stage.output);
  OpId ended =
      builder.elementwise({.function = Function::zero, .out = {builder.rows_of(accumulator, 0)}, .waits = stage.ready});
  for (std::int32_t step = 0; step < stage.ranks; ++step) {
    const Region received = builder.rows_of(accumulator, (step + 1) % 2);
    const OpId exchange = builder.exchange({.axis = stage.axis,
                                            .shift = 1,
                                            .send = {builder.rows_of(accumulator, step % 2)},
                                            .receive = {received},
                                            .wire = options.dtype,
                                            .waits = {ended}});
    product(step, builder.whole(partial), {});
    const bool last = step + 1 == stage.ranks;
    ended = builder.elementwise({.function = Function::add,
                                 .inputs = {{received}, {builder.whole(partial)}},
                                 .out = {last ? builder.whole(stage.output) : received},
                                 .waits = {exchange}});
  }
  return {ended};
}

}  // namespace

constexpr Strategy looped_einsum_strategy{
    .name = "looped_einsum",
    .summary = "a loop that moves a shard while it multiplies one, synchronised every iteration (XLA)",
    .exposed = "what a transfer is longer than a product, every step; one transfer of zeros",
    .source = "Wang et al., ASPLOS 2023; XLA windowed einsum",
    .cuts = parts::one_cut,
    .ag_gemm = looped_einsum_ag_gemm,
    .gemm_rs = looped_einsum_gemm_rs,
    .relevant = parts::no_options,
    .tried = parts::only,
    .proved = parts::only_this,
    .describe = parts::nothing,
};

}  // namespace commfuse
