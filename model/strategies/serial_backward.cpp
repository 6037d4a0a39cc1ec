// SPDX-License-Identifier: Apache-2.0
// The backward passes without overlap, in the order of Megatron-Core:
//
//   ag_gemm_backward   comm     |ag x|        |rs dx|            compute  |    |dx partial|     |dw|
//   gemm_rs_backward   comm     |ag dy|                          compute  |     |dx|dw|
//
// Let c and w be the times of the GEMMs of dx and dw. Makespan of ag_gemm_backward: the gather (none if the gathered x
// was saved) + c + the scatter + w. Makespan of gemm_rs_backward: the gather + c + w. One rank takes c + w.
#include "model/strategies/strategies.h"
#include "model/strategies/whole_backward.h"

namespace commfuse {

Done serial_ag_gemm_backward(const Stage& stage, const StrategyOptions& options) {
  return whole_ag_gemm_backward(stage, options, false);
}

Done serial_gemm_rs_backward(const Stage& stage, const StrategyOptions& options) {
  if (stage.ranks == 1) {
    return backward_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const BufferId dy = stage.scratch("gathered", stage.ranks * stage.cuts, stage.input);
  const OpId gathered = builder.collective({.kind = CollectiveKind::all_gather,
                                            .axis = stage.axis,
                                            .in = {builder.whole(stage.input)},
                                            .out = {builder.whole(dy)},
                                            .wire = options.dtype,
                                            .waits = stage.ready});
  const OpId gemm = builder.gemm({.a = {builder.whole(dy)},
                                  .b = {builder.whole(stage.weight)},
                                  .out = {builder.whole(stage.output)},
                                  .waits = {gathered},
                                  .transpose_b = true});
  builder.gemm({.a = {builder.whole(stage.saved)},
                .b = {builder.whole(dy)},
                .out = {builder.whole(stage.gradient)},
                .transpose_a = true});
  return {gemm};
}

}  // namespace commfuse
