// SPDX-License-Identifier: Apache-2.0
// FuseAG, direct form: every rank sends its own shard straight to each of the others, nearest follower first.
//
//            step 0     step 1     step 2     step 3          (4 ranks, seen from rank r)
//   compute  shard r    shard r-1  shard r-2  shard r-3
//   comm     r -> r+1   r -> r+2   r -> r+3   idle
//
// No transfer depends on another rank's progress but the receiver's. Makespan c + (N-1) max(c, p), as the ring's.
#include "model/schedule/strategies.h"

namespace commfuse {

Done fuse_ag_direct(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const Operand own{builder.whole(stage.input)};
  const BufferId gathered = stage.ranks > 1 ? stage.scratch("gathered", stage.ranks - 1, stage.input) : stage.input;
  Operand held = own;
  std::vector<OpId> arrived = stage.ready;
  Done done;
  for (std::int32_t step = 0; step < stage.ranks; ++step) {
    Operand next;
    std::vector<OpId> next_arrived;
    if (step + 1 < stage.ranks) {
      next = {stage.rows_of(gathered, step)};
      next_arrived = {builder.exchange({.axis = stage.axis,
                                        .shift = step + 1,
                                        .send = own,
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
