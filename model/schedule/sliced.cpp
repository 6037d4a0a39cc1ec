// SPDX-License-Identifier: Apache-2.0
// Data slicing: every rank's shard is cut into k slices; slice i of all ranks is gathered, or scattered, under the
// product of a neighbouring slice. Communicate-first for ag_gemm and compute-first for gemm_rs, as Ascend CoC
// (COCParallel) and Megatron's pipelined chunks do it. k = 4:
//
//   ag_gemm   comm     |ag0|ag1|ag2|ag3|
//             compute      |y0 |y1 |y2 |y3 |          ag0 is the head
//
//   gemm_rs   compute  |y0 |y1 |y2 |y3 |
//             comm         |rs0|rs1|rs2|rs3|          rs3 is the tail
//
// With r = T_coll(V/k) and c' one slice's product: makespan c' + (k-1) max(c', r) + r (method.md 1.6).
#include "model/schedule/strategies.h"

namespace commfuse {

Done sliced_ag_gemm(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const BufferId gathered = stage.scratch("gathered", stage.ranks * stage.cuts, stage.input);  // slice after slice
  const auto gather = [&](std::int32_t i) {
    return builder.collective({.kind = CollectiveKind::all_gather,
                               .axis = stage.axis,
                               .in = {stage.rows_of(stage.input, i)},
                               .out = {stage.rows_of(gathered, i * stage.ranks, stage.ranks)},
                               .wire = options.dtype,
                               .waits = i == 0 ? stage.ready : std::vector<OpId>{}});
  };
  Done done;
  OpId arrived = gather(0);
  for (std::int32_t i = 0; i < stage.cuts; ++i) {
    const OpId here = arrived;
    if (i + 1 < stage.cuts) {
      arrived = gather(i + 1);
    }
    done = {builder.gemm({.a = {stage.rows_of(gathered, i * stage.ranks, stage.ranks)},
                          .b = {builder.whole(stage.weight)},
                          .out = slice_of_all_shards(stage, stage.output, i),
                          .waits = {here}})};
  }
  return done;
}

Done sliced_gemm_rs(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const BufferId partial = stage.scratch("partial", stage.ranks * stage.cuts, stage.output);  // slice after slice
  Done done;
  for (std::int32_t i = 0; i < stage.cuts; ++i) {
    const OpId product = stage.multiply({.a = slice_of_all_shards(stage, stage.input, i),
                                         .b = {builder.whole(stage.weight)},
                                         .out = {stage.rows_of(partial, i * stage.ranks, stage.ranks)},
                                         .waits = i == 0 ? stage.ready : std::vector<OpId>{}});
    done = {builder.collective({.kind = CollectiveKind::reduce_scatter,
                                .axis = stage.axis,
                                .in = {stage.rows_of(partial, i * stage.ranks, stage.ranks)},
                                .out = {stage.rows_of(stage.output, i)},
                                .wire = options.dtype,
                                .waits = {product}})};
  }
  return done;
}

}  // namespace commfuse
