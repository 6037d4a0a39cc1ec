// SPDX-License-Identifier: Apache-2.0
// FuseAG, ring form (CommFuse Alg 1, Fig 6): a rank multiplies the shard it holds while that same shard moves on.
//
//            step 0     step 1     step 2     step 3          (4 ranks, seen from rank r)
//   compute  shard r    shard r-1  shard r-2  shard r-3
//   comm     r   ->     r-1 ->     r-2 ->     idle
//
// Per rank N products and N-1 transfers of one shard. Product c, transfer p: makespan c + (N-1) max(c, p).
#include "model/schedule/strategies.h"

namespace commfuse {

Done fuse_ag_ring(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  Operand held{builder.whole(stage.input)};
  std::vector<OpId> arrived = stage.ready;
  const BufferId gathered = stage.ranks > 1 ? stage.scratch("gathered", stage.ranks - 1, stage.input) : stage.input;
  Done done;
  for (std::int32_t step = 0; step < stage.ranks; ++step) {
    Operand next;
    std::vector<OpId> next_arrived;
    if (step + 1 < stage.ranks) {
      next = {stage.rows_of(gathered, step)};
      // From step 1 on it passes on what the exchange before it received; their lane keeps them in order.
      next_arrived = {builder.exchange({.axis = stage.axis,
                                        .shift = 1,
                                        .send = held,
                                        .receive = next,
                                        .wire = options.dtype,
                                        .waits = step == 0 ? stage.ready : std::vector<OpId>{}})};
    }
    const Index shard = along(builder.mesh(), stage.axis, -step);
    done = {builder.gemm({.a = held,
                          .b = {builder.whole(stage.weight)},
                          .out = {stage.rows_of(stage.output, shard)},
                          .waits = arrived})};
    held = next;
    arrived = next_arrived;
  }
  return done;
}

}  // namespace commfuse
