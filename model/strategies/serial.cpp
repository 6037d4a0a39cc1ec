// SPDX-License-Identifier: Apache-2.0
// Serial: nothing overlaps.
//
//   ag_gemm   comm     |== all-gather ==|
//             compute                   |==== product ====|
//
//   gemm_rs   compute  |==== product ====|
//             comm                       |== reduce-scatter ==|
//
//   mlp_ar    compute  |== product ==|a|== product ==|                    |r|n|
//             comm                                    |== all-reduce ==|            a activation, r residual, n norm
//
// Makespan C + T_coll (method.md 1.6), of one rank C.
#include "model/strategies/mlp_block.h"
#include "model/strategies/rings.h"
#include "model/strategies/strategies.h"

namespace commfuse {

Done serial_ag_gemm(const Stage& stage, const StrategyOptions& options) {
  if (stage.ranks == 1) {
    return multiply_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const BufferId gathered = stage.scratch("gathered", stage.ranks * stage.cuts, stage.input);
  const OpId gather = builder.collective({.kind = CollectiveKind::all_gather,
                                          .axis = stage.axis,
                                          .in = {builder.whole(stage.input)},
                                          .out = {builder.whole(gathered)},
                                          .wire = options.dtype,
                                          .waits = stage.ready});
  return {builder.gemm({.a = {builder.whole(gathered)},
                        .b = {builder.whole(stage.weight)},
                        .out = {builder.whole(stage.output)},
                        .waits = {gather}})};
}

Done serial_gemm_rs(const Stage& stage, const StrategyOptions& options) {
  if (stage.ranks == 1) {
    return multiply_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const BufferId partial = stage.scratch("partial", stage.ranks * stage.cuts, stage.output);
  const OpId product = stage.multiply({.a = {builder.whole(stage.input)},
                                       .b = {builder.whole(stage.weight)},
                                       .out = {builder.whole(partial)},
                                       .waits = stage.ready});
  return {builder.collective({.kind = CollectiveKind::reduce_scatter,
                              .axis = stage.axis,
                              .in = {builder.whole(partial)},
                              .out = {builder.whole(stage.output)},
                              .wire = options.dtype,
                              .waits = {product}})};
}

Done serial_mlp_ar(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const std::int32_t tokens = stage.ranks * stage.cuts;
  const MlpBlock block(stage);
  if (stage.ranks == 1) {
    return block.alone();
  }
  const BufferId reduced = stage.scratch("reduced", tokens, stage.output);
  block.activate(0, tokens, stage.ready);
  const OpId multiplied = block.multiply(0, tokens);
  const OpId summed = builder.collective({.kind = CollectiveKind::all_reduce,
                                          .axis = stage.axis,
                                          .in = {block.partial(0, tokens)},
                                          .out = {builder.whole(reduced)},
                                          .wire = options.dtype,
                                          .waits = {multiplied}});
  return {block.add_and_norm({LaneKind::compute, 0}, builder.whole(reduced), 0, builder.whole(stage.output), {summed})};
}

}  // namespace commfuse
