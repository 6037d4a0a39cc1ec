// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/whole_backward.h"

namespace commfuse {

Done whole_ag_gemm_backward(const Stage& stage, const StrategyOptions& options, bool overlapped) {
  if (stage.ranks == 1) {
    return backward_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  BufferId x = stage.saved;
  std::vector<OpId> gathered = overlapped ? std::vector<OpId>{} : stage.ready;
  if (options.regather == Regather::again) {
    x = stage.scratch("gathered", stage.ranks * stage.cuts, stage.saved);
    gathered = {builder.collective({.kind = CollectiveKind::all_gather,
                                    .axis = stage.axis,
                                    .in = {builder.whole(stage.saved)},
                                    .out = {builder.whole(x)},
                                    .wire = options.dtype,
                                    .waits = gathered})};
  }
  const BufferId partial = stage.scratch("partial", stage.ranks * stage.cuts, stage.output);
  const OpId product = builder.gemm({.a = {builder.whole(stage.input)},
                                     .b = {builder.whole(stage.weight)},
                                     .out = {builder.whole(partial)},
                                     .waits = overlapped ? stage.ready : gathered,
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
                .waits = overlapped ? gathered : std::vector{scattered},
                .transpose_a = true});
  return {scattered};
}

Done backward_alone(const Stage& stage) {
  ProgramBuilder& builder = stage.builder;
  const OpId product = builder.gemm({.a = {builder.whole(stage.input)},
                                     .b = {builder.whole(stage.weight)},
                                     .out = {builder.whole(stage.output)},
                                     .waits = stage.ready,
                                     .transpose_b = true});
  builder.gemm({.a = {builder.whole(stage.saved)},
                .b = {builder.whole(stage.input)},
                .out = {builder.whole(stage.gradient)},
                .transpose_a = true});
  return {product};
}

}  // namespace commfuse
