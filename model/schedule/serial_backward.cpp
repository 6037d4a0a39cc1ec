// SPDX-License-Identifier: Apache-2.0
// The backward passes without overlap, in the order in which Megatron-Core has them:
//
//   ag_gemm_backward   comm     |ag x|        |rs dx|            compute  |    |dx partial|     |dw|
//   gemm_rs_backward   comm     |ag dy|                          compute  |     |dx|dw|
//
// Makespans: the gather, which falls away where x was saved gathered, c, the scatter, w; and the gather, c, w.
#include "model/schedule/strategies.h"

namespace commfuse {

namespace {

OpId gather(const Stage& stage, const StrategyOptions& options, BufferId from, BufferId to) {
  return stage.builder.collective({.kind = CollectiveKind::all_gather,
                                   .axis = stage.axis,
                                   .in = {stage.builder.whole(from)},
                                   .out = {stage.builder.whole(to)},
                                   .wire = options.dtype,
                                   .waits = stage.ready});
}

}  // namespace

Done serial_ag_gemm_backward(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  BufferId x = stage.saved;
  std::vector<OpId> gathered = stage.ready;
  if (options.regather == Regather::again) {
    x = stage.scratch("gathered", stage.ranks * stage.cuts, stage.saved);
    gathered = {gather(stage, options, stage.saved, x)};
  }
  const BufferId partial = stage.scratch("partial", stage.ranks * stage.cuts, stage.output);
  const OpId product = builder.gemm({.a = {builder.whole(stage.input)},
                                     .b = {builder.whole(stage.weight)},
                                     .out = {builder.whole(partial)},
                                     .waits = gathered,
                                     .transpose_b = true});
  const OpId scattered = builder.collective({.kind = CollectiveKind::reduce_scatter,
                                             .axis = stage.axis,
                                             .in = {builder.whole(partial)},
                                             .out = {builder.whole(stage.output)},
                                             .wire = options.dtype,
                                             .waits = {product}});
  builder.gemm({.a = {builder.whole(x)},
                .b = {builder.whole(stage.input)},
                .out = {builder.whole(stage.gradient)},
                .waits = {scattered},
                .transpose_a = true});
  return {scattered};
}

Done serial_gemm_rs_backward(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const BufferId dy = stage.scratch("gathered", stage.ranks * stage.cuts, stage.input);
  const OpId gathered = gather(stage, options, stage.input, dy);
  const OpId product = builder.gemm({.a = {builder.whole(dy)},
                                     .b = {builder.whole(stage.weight)},
                                     .out = {builder.whole(stage.output)},
                                     .waits = {gathered},
                                     .transpose_b = true});
  builder.gemm({.a = {builder.whole(stage.saved)},
                .b = {builder.whole(dy)},
                .out = {builder.whole(stage.gradient)},
                .transpose_a = true});
  return {product};
}

}  // namespace commfuse
