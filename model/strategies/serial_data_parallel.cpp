// SPDX-License-Identifier: Apache-2.0
// Data parallelism with sharded weights, without overlap. Two layers, forward and backward:
//
//   comm     |ag w1|   |ag w2|             |rs dw2|         |rs dw1|
//   compute        |y1 |     |y2 |dx2|dw2  |      |dx1|dw1  |
//
// The makespan is the sum of all ops. With a single rank, nothing is gathered or scattered.
#include "model/strategies/strategies.h"
#include "model/strategies/weight_shards.h"

namespace commfuse {

Done serial_weight_ag_gemm(const Stage& stage, const StrategyOptions& options) {
  if (stage.ranks == 1) {
    return weight_gemm_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const OpId gathered = builder.collective({.kind = CollectiveKind::all_gather,
                                            .axis = stage.axis,
                                            .in = {WeightShards(stage).shard({})},
                                            .out = {builder.whole(stage.weight)},
                                            .wire = options.dtype,
                                            .waits = stage.ready});
  return {builder.gemm({.a = {builder.whole(stage.input)},
                        .b = {builder.whole(stage.weight)},
                        .out = {builder.whole(stage.output)},
                        .waits = {gathered},
                        .transpose_b = true})};
}

Done serial_gradient_rs(const Stage& stage, const StrategyOptions&) {
  if (stage.ranks == 1) {
    return weight_gradient_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const BufferId partial = stage.scratch("partial", builder.buffer_of(stage.weight).rows.blocks, stage.gradient);
  builder.gemm({.a = {builder.whole(stage.input)},
                .b = {builder.whole(stage.weight)},
                .out = {builder.whole(stage.output)},
                .waits = stage.ready});
  const OpId gemm = builder.gemm({.a = {builder.whole(stage.input)},
                                  .b = {builder.whole(stage.saved)},
                                  .out = {builder.whole(partial)},
                                  .transpose_a = true});
  return {builder.collective({.kind = CollectiveKind::reduce_scatter,
                              .axis = stage.axis,
                              .in = {builder.whole(partial)},
                              .out = {builder.whole(stage.gradient)},
                              .wire = builder.buffer_of(stage.gradient).dtype,
                              .waits = {gemm}})};
}

}  // namespace commfuse
