// SPDX-License-Identifier: Apache-2.0
// Serial: nothing overlaps.
//
//   ag_gemm   comm     |== all-gather ==|
//             compute                   |==== product ====|
//
//   gemm_rs   compute  |==== product ====|
//             comm                       |== reduce-scatter ==|
//
// Makespan C + T_coll (method.md 1.6).
#include "model/schedule/strategies.h"

namespace commfuse {

Done serial_ag_gemm(const Stage& stage, const StrategyOptions& options) {
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

}  // namespace commfuse
