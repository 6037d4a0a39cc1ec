// SPDX-License-Identifier: Apache-2.0
// CommFuse for the backward pass of a row-parallel product: FuseAG over dy, and every shard that has come feeds two
// products, its rows of dx = dy w^T and its contribution to dw = x^T dy, which is added up in fp32.
//
//            step 0             step 1             step 2             step 3          (4 ranks, seen from rank r)
//   compute  dx[r] dw=          dx[r-1] dw+=       dx[r-2] dw+=       dx[r-3] dw+=
//   comm     r   ->             r-1 ->             r-2 ->             idle
//
// Two products hide one transfer, but every dw+= reads and writes the whole gradient in fp32, which its price knows.
// Products c and w, transfer p: makespan c + w + (N-1) max(c + w, p).
#include "model/schedule/fuse_steps.h"
#include "model/schedule/strategies.h"

namespace commfuse {

Done fuse_gemm_rs_backward(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  std::vector<Operand> places{{builder.whole(stage.input)}};
  if (stage.ranks > 1) {
    const BufferId gathered = stage.scratch("gathered", stage.ranks - 1, stage.input);
    for (std::int32_t step = 0; step + 1 < stage.ranks; ++step) {
      places.push_back({builder.rows_of(gathered, step)});
    }
  }
  std::vector<OpId> arrived = stage.ready;
  Done done;
  for (std::int32_t step = 0; step < stage.ranks; ++step) {
    const std::vector<OpId> here = arrived;
    if (step + 1 < stage.ranks) {
      arrived = {gather_step(stage, options, step, places, stage.ready)};
    }
    const Operand& dy = places[static_cast<std::size_t>(step)];
    const Index shard = along(builder.mesh(), stage.axis, -step);
    done = {builder.gemm({.a = dy,
                          .b = {builder.whole(stage.weight)},
                          .out = {builder.rows_of(stage.output, shard)},
                          .waits = here,
                          .transpose_b = true})};
    builder.gemm({.a = {builder.rows_of(stage.saved, shard)},
                  .b = dy,
                  .out = {builder.whole(stage.gradient)},
                  .accumulate = step > 0,
                  .transpose_a = true});
  }
  return done;
}

}  // namespace commfuse
