// SPDX-License-Identifier: Apache-2.0
// CommFuse for the backward pass of a row-parallel GEMM: FuseAG over dy; every arriving shard is multiplied into its
// rows of dx = dy w^T. The weight's gradient dw = x^T dy sums over all shards. One GEMM can compute it at the end:
//
//            step 0     step 1     step 2     step 3                     (4 ranks, seen from rank r)
//   compute  dx[r]      dx[r-1]    dx[r-2]    dx[r-3]    dw ...........
//   comm     r   ->     r-1 ->     r-2 ->     idle
//
// With the times c of a GEMM of dx, w of dw's GEMM and p of a transfer, the makespan is c + (N-1) max(c, p) + w.
// Alternatively, dw is computed shard by shard, as each arrives:
//
//   compute  dx[r] dw=          dx[r-1] dw+=       dx[r-2] dw+=       dx[r-3] dw+=
//   comm     r   ->             r-1 ->             r-2 ->             idle
//
// Here w is the time of one shard's GEMM, and the makespan is (c + w) + (N-1) max(c + w, p). Two GEMMs hide one
// transfer, but every dw+= reads and writes the whole gradient in fp32, which its price includes. This pays off when
// links are slow and shards are long.
#include "model/strategies/fuse_steps.h"
#include "model/strategies/strategies.h"

namespace commfuse {

namespace {

/// Returns the places of the shards of dy, for gather_step. A single GEMM for dw needs the shards together and in
/// order; otherwise the rank's own shard stays in its buffer.
std::vector<Operand> places_of(const Stage& stage, bool together) {
  ProgramBuilder& builder = stage.builder;
  std::vector<Operand> places{{builder.whole(stage.input)}};
  if (stage.ranks == 1) {
    return places;
  }
  const BufferId gathered = stage.scratch("gathered", together ? stage.ranks : stage.ranks - 1, stage.input);
  for (std::int32_t behind = 1; behind < stage.ranks; ++behind) {
    places.push_back(
        {builder.rows_of(gathered, together ? along(builder.mesh(), stage.axis, -behind) : Index{behind - 1})});
  }
  return places;
}

/// Returns the buffer with all of dy. Adds the copy of the rank's own shard next to the other shards, and appends this
/// op to `waits`.
BufferId whole_of(const Stage& stage, const std::vector<Operand>& places, std::vector<OpId>& waits) {
  if (stage.ranks == 1) {
    return stage.input;
  }
  const BufferId gathered = places.back().front().buffer;
  waits.push_back(copy_own_shard(stage, stage.input, gathered, stage.ready));
  return gathered;
}

}  // namespace

Done fuse_gemm_rs_backward(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const bool at_the_end = options.sum == Sum::end;
  const std::vector<Operand> places = places_of(stage, at_the_end);
  std::vector<OpId> arrived = stage.ready;
  Done done;
  for (std::int32_t step = 0; step < stage.ranks; ++step) {
    const std::vector<OpId> ready = arrived;
    if (step + 1 < stage.ranks) {
      arrived = {gather_step(stage, options, step, places, stage.ready)};
    }
    const Operand& dy = places[static_cast<std::size_t>(step)];
    const Index shard = along(builder.mesh(), stage.axis, -step);
    done = {builder.gemm({.a = dy,
                          .b = {builder.whole(stage.weight)},
                          .out = {builder.rows_of(stage.output, shard)},
                          .waits = ready,
                          .transpose_b = true})};
    if (!at_the_end) {
      builder.gemm({.a = {builder.rows_of(stage.saved, shard)},
                    .b = dy,
                    .out = {builder.whole(stage.gradient)},
                    .accumulate = step > 0,
                    .transpose_a = true});
    }
  }
  if (at_the_end) {
    std::vector<OpId> copied;
    const BufferId dy = whole_of(stage, places, copied);
    builder.gemm({.a = {builder.whole(stage.saved)},
                  .b = {builder.whole(dy)},
                  .out = {builder.whole(stage.gradient)},
                  .waits = copied,
                  .transpose_a = true});
  }
  return done;
}

}  // namespace commfuse
