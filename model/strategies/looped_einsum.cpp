// SPDX-License-Identifier: Apache-2.0
// Looped collective einsum (Wang et al., ASPLOS 2023, which became XLA's windowed einsum or collective matmul), in one
// direction. Every iteration of a loop sends one shard and multiplies one shard; the next iteration starts when both
// operations have ended. 4 ranks, seen from rank r; = is the loop's synchronization, m[j] the accumulator of shard j:
//
//   ag_gemm   compute  |x[r]      =|x[r-1]    =|x[r-2]    =|x[r-3] |
//             comm     |x[r] ->   =|x[r-1] -> =|x[r-2] -> =|
//
//   gemm_rs   compute  |p[r-1]  +=|p[r-2]  +=|p[r-3]  +=|p[r]  +|
//             comm     |0 ->     =|m[r-1] ->=|m[r-2] ->=|m[r-3] ->|
//
// The accumulator of gemm_rs starts at zero and is sent at the start of every iteration, even the first; the partial
// product is added at the end of the iteration. With the times c of a GEMM, p of a transfer, a of an add and z of
// zeroing, the makespan of ag_gemm is c + (N-1) max(c, p), and that of gemm_rs is z + N (max(c, p) + a).
//
// The backward passes are loops of these two kinds, one after the other. dw sums over tokens, so the loop of the
// column-parallel pass multiplies each passing shard of x into dw (a window over a contracted dimension). The
// row-parallel pass keeps all shards of dy, which two GEMMs need, and computes dw in one GEMM (XLA caches what a loop
// gathered):
//
//   ag_gemm_backward   compute  (as gemm_rs: dx)  |dw=     =|dw+=     =|dw+=     =|dw+=    |
//                      comm                       |x[r] -> =|x[r-1] ->=|x[r-2] ->=|
//
//   gemm_rs_backward   compute  |dx[r]   =|dx[r-1]    =|dx[r-2]    =|dx[r-3]|dw ...........|
//                      comm     |dy[r]-> =|dy[r-1] -> =|dy[r-2] -> =|
//
// With w the time of one shard's part of dw, the makespan of ag_gemm_backward is z + N (max(c, p) + a) + w + (N-1)
// max(w, p). If the gathered x was saved, dw is one GEMM; with w its time, the makespan is z + N (max(c, p) + a) + w.
// That of gemm_rs_backward is c + (N-1) max(c, p) + w. One rank takes c + w.
#include <algorithm>
#include <functional>

#include "model/strategies/fuse_steps.h"
#include "model/strategies/rings.h"
#include "model/strategies/strategies.h"
#include "model/strategies/strategy_parts.h"
#include "model/strategies/whole_backward.h"

namespace commfuse {

namespace {

/// Returns the place of the shard that iteration i of a gather multiplies: shard r - i of rank r.
using PlaceOf = std::function<Operand(std::int32_t i)>;
/// Adds the GEMM of iteration i.
using Multiply = std::function<OpId(std::int32_t i, const std::vector<OpId>& waits)>;

/// Adds the loop that passes shards on while it multiplies them. Returns the last GEMM.
OpId gather_loop(const Stage& stage, const StrategyOptions& options, std::vector<OpId> ready, const PlaceOf& place,
                 const Multiply& multiply) {
  OpId gemm{};
  for (std::int32_t step = 0; step < stage.ranks; ++step) {
    std::vector<OpId> ends;  // ops that end this iteration
    if (step + 1 < stage.ranks) {
      ends = {stage.builder.exchange({.axis = stage.axis,
                                      .shift = 1,
                                      .send = place(step),
                                      .receive = place(step + 1),
                                      .wire = options.dtype,
                                      .waits = ready})};
    }
    gemm = multiply(step, ready);
    ends.push_back(gemm);
    ready = ends;
  }
  return gemm;
}

/// Returns the places of a gather: the rank's own shard for iteration 0, then two windows alternately.
PlaceOf windows_of(const Stage& stage, BufferId own_shard) {
  const std::int32_t windows = std::min(stage.ranks - 1, 2);
  const BufferId window = windows > 0 ? stage.scratch("window", windows, own_shard) : own_shard;
  return [&stage, own_shard, windows, window](std::int32_t i) {
    return Operand{i == 0 ? stage.builder.whole(own_shard)
                          : stage.builder.rows_of(window, windows > 1 ? (i - 1) % 2 : 0)};
  };
}

Done looped_einsum_ag_gemm(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const PlaceOf place = windows_of(stage, stage.input);
  return {gather_loop(stage, options, stage.ready, place, [&](std::int32_t step, const std::vector<OpId>& waits) {
    return builder.gemm({.a = place(step),
                         .b = {builder.whole(stage.weight)},
                         .out = {builder.rows_of(stage.output, along(builder.mesh(), stage.axis, -step))},
                         .waits = waits});
  })};
}

/// Adds the loop that scatters partial products; `transposed`: the second factor is w^T.
OpId scatter_loop(const Stage& stage, bool transposed) {
  ProgramBuilder& builder = stage.builder;
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
                                            .wire = builder.buffer_of(stage.output).dtype,
                                            .waits = {ended}});
    builder.gemm({.a = {builder.rows_of(stage.input, along(builder.mesh(), stage.axis, -1 - step))},
                  .b = {builder.whole(stage.weight)},
                  .out = {builder.whole(partial)},
                  .transpose_b = transposed});
    const bool last = step + 1 == stage.ranks;
    ended = builder.elementwise({.function = Function::add,
                                 .inputs = {{received}, {builder.whole(partial)}},
                                 .out = {last ? builder.whole(stage.output) : received},
                                 .waits = {exchange}});
  }
  return ended;
}

Done looped_einsum_gemm_rs(const Stage& stage, const StrategyOptions&) {
  return stage.ranks == 1 ? multiply_alone(stage) : Done{scatter_loop(stage, false)};
}

Done looped_einsum_ag_gemm_backward(const Stage& stage, const StrategyOptions& options) {
  if (stage.ranks == 1) {
    return backward_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const OpId scattered = scatter_loop(stage, true);
  if (options.regather == Regather::saved) {
    whole_gradient(stage, stage.saved, stage.input, {});
    return {scattered};
  }
  const PlaceOf place = windows_of(stage, stage.saved);
  gather_loop(stage, options, {scattered}, place, [&](std::int32_t step, const std::vector<OpId>& waits) {
    return builder.gemm({.a = place(step),
                         .b = {builder.rows_of(stage.input, along(builder.mesh(), stage.axis, -step))},
                         .out = {builder.whole(stage.gradient)},
                         .accumulate = step > 0,
                         .waits = waits,
                         .transpose_a = true});
  });
  return {scattered};
}

Done looped_einsum_gemm_rs_backward(const Stage& stage, const StrategyOptions& options) {
  if (stage.ranks == 1) {
    return backward_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const BufferId dy = stage.scratch("gathered", stage.ranks, stage.input);
  const auto shard = [&](std::int32_t step) { return along(builder.mesh(), stage.axis, -step); };
  const PlaceOf place = [&](std::int32_t step) {
    return Operand{step == 0 ? builder.whole(stage.input) : builder.rows_of(dy, shard(step))};
  };
  const OpId gemm =
      gather_loop(stage, options, stage.ready, place, [&](std::int32_t step, const std::vector<OpId>& waits) {
        return builder.gemm({.a = place(step),
                             .b = {builder.whole(stage.weight)},
                             .out = {builder.rows_of(stage.output, shard(step))},
                             .waits = waits,
                             .transpose_b = true});
      });
  whole_gradient(stage, stage.saved, dy, {copy_own_shard(stage, stage.input, dy, stage.ready)});
  return {gemm};
}

}  // namespace

constexpr Strategy looped_einsum_strategy{
    .name = "looped_einsum",
    .summary = "a loop moves one shard while it multiplies another; synchronized every iteration (XLA)",
    .exposed = "max(0, transfer - GEMM) per step; one transfer of zeros",
    .source = "Wang et al., ASPLOS 2023; XLA windowed einsum",
    .uses = {Option::regather},
    .cuts = parts::one_cut,
    .ag_gemm = looped_einsum_ag_gemm,
    .gemm_rs = looped_einsum_gemm_rs,
    .ag_gemm_backward = looped_einsum_ag_gemm_backward,
    .gemm_rs_backward = looped_einsum_gemm_rs_backward,
    .relevant = parts::with_regather<parts::no_options>,
    .tried = parts::only,
    .proved = parts::both_regathers<parts::only_this>,
    .describe = parts::nothing,
};

}  // namespace commfuse
