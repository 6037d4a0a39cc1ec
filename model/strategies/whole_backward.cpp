// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/whole_backward.h"

namespace commfuse {

GatheredInput gather_input(const Stage& stage, const StrategyOptions& options, const std::vector<OpId>& waits) {
  if (options.regather == Regather::saved) {
    return {stage.saved, waits};
  }
  ProgramBuilder& builder = stage.builder;
  const BufferId x = stage.scratch("gathered", stage.ranks * stage.cuts, stage.saved);
  return {x,
          {builder.collective({.kind = CollectiveKind::all_gather,
                               .axis = stage.axis,
                               .in = {builder.whole(stage.saved)},
                               .out = {builder.whole(x)},
                               .wire = options.dtype,
                               .waits = waits})}};
}

OpId whole_gradient(const Stage& stage, BufferId x, BufferId dy, const std::vector<OpId>& waits) {
  ProgramBuilder& builder = stage.builder;
  return builder.gemm({.a = {builder.whole(x)},
                       .b = {builder.whole(dy)},
                       .out = {builder.whole(stage.gradient)},
                       .waits = waits,
                       .transpose_a = true});
}

Done whole_ag_gemm_backward(const Stage& stage, const StrategyOptions& options, bool overlapped) {
  if (stage.ranks == 1) {
    return backward_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const GatheredInput x = gather_input(stage, options, overlapped ? std::vector<OpId>{} : stage.ready);
  const BufferId partial = stage.scratch("partial", stage.ranks * stage.cuts, stage.output);
  const OpId gemm = builder.gemm({.a = {builder.whole(stage.input)},
                                  .b = {builder.whole(stage.weight)},
                                  .out = {builder.whole(partial)},
                                  .waits = overlapped ? stage.ready : x.complete,
                                  .transpose_b = true});
  const OpId scattered = builder.collective({.kind = CollectiveKind::reduce_scatter,
                                             .axis = stage.axis,
                                             .in = {builder.whole(partial)},
                                             .out = {builder.whole(stage.output)},
                                             .wire = builder.buffer_of(stage.output).dtype,
                                             .waits = {gemm}});
  whole_gradient(stage, x.buffer, stage.input, overlapped ? x.complete : std::vector{scattered});
  return {scattered};
}

Done backward_alone(const Stage& stage) {
  ProgramBuilder& builder = stage.builder;
  const OpId gemm = builder.gemm({.a = {builder.whole(stage.input)},
                                  .b = {builder.whole(stage.weight)},
                                  .out = {builder.whole(stage.output)},
                                  .waits = stage.ready,
                                  .transpose_b = true});
  whole_gradient(stage, stage.saved, stage.input, {});
  return {gemm};
}

}  // namespace commfuse
