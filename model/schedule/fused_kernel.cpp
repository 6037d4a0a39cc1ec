// SPDX-License-Identifier: Apache-2.0
// The bound of kernels that communicate themselves (Flux, TileLink, cuBLASMp): one product kernel a site, whose tiles
// are loaded from, or stored to, other ranks while it runs. It is no implementation: the product loses nothing by
// being cut (every part takes its share of the whole kernel), transfers need no launch and no SMs, and each goes
// straight to its owner. 4 ranks, seen from rank r; the parts | are those of one kernel:
//
//   ag_gemm   kernel   |x[r]    :x[r-1]  :x[r-2]  :x[r-3] |
//             comm     |-> r+1  |-> r+2  |-> r+3  |
//
//   gemm_rs   kernel   |p[r+1]  :p[r+2]  :p[r+3]  :p[r]    |+|
//             comm              |-> r+1  |-> r+2  |-> r+3  |
//
// Kernel C, transfer of a shard p, sum s: makespan C/N + (N-1) max(C/N, p), and s more for gemm_rs: C (+ s) while a
// transfer is no longer than its share of the kernel. Beyond that it is a bound of what moves whole shards.
#include "model/schedule/partials_to_owners.h"
#include "model/schedule/strategies.h"

namespace commfuse {

Done fused_kernel_ag_gemm(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const std::int32_t ranks = stage.ranks;
  const BufferId gathered = ranks > 1 ? stage.scratch("gathered", ranks - 1, stage.input) : stage.input;
  Operand held{builder.whole(stage.input)};
  std::vector<OpId> arrived = stage.ready;
  Done done;
  for (std::int32_t step = 0; step < ranks; ++step) {
    const Index shard = along(builder.mesh(), stage.axis, -step);
    done = {builder.gemm({.a = held,
                          .b = {builder.whole(stage.weight)},
                          .out = {builder.rows_of(stage.output, shard)},
                          .waits = arrived,
                          .kernel_rows = ranks})};
    if (step + 1 < ranks) {
      held = {builder.rows_of(gathered, step)};
      arrived = {builder.exchange({.axis = stage.axis,
                                   .shift = step + 1,
                                   .send = {builder.whole(stage.input)},
                                   .receive = held,
                                   .wire = options.dtype,
                                   .waits = step == 0 ? stage.ready : std::vector<OpId>{},
                                   .in_kernel = true})};
    }
  }
  return done;
}

Done fused_kernel_gemm_rs(const Stage& stage, const StrategyOptions& options) {
  return partials_to_owners(stage, options, {.one_kernel = true});
}

}  // namespace commfuse
