// SPDX-License-Identifier: Apache-2.0
// The backward passes as Ascend CoC and Megatron-Core overlap them. The column-parallel one is not sliced: its two
// products hide the two collectives. In the row-parallel one the gather is sliced as in the forward pass, k = 4:
//
//   ag_gemm_backward   comm     |ag x      |rs dx     |
//                      compute  |dx partial|dw        |
//
//   gemm_rs_backward   comm     |ag0|ag1|ag2|ag3|
//                      compute      |dx0|dx1|dx2|dx3|dw            |          ag0 is the head
//
// With products c and w, gather g, scatter r: makespan max(c, g) + max(w, r); g falls away where x was saved gathered.
// With r = T_coll(V/k) and c' one slice's product: makespan c' + (k-1) max(c', r) + r + w.
//
// The gradient of the row-parallel weight is one product of all tokens in the order in which they were gathered, slice
// after slice, so it reads x in strides.
#include "model/schedule/slices.h"
#include "model/schedule/strategies.h"

namespace commfuse {

Done sliced_ag_gemm_backward(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  BufferId x = stage.saved;
  std::vector<OpId> gathered;
  if (options.regather == Regather::again) {
    x = stage.scratch("gathered", stage.ranks * stage.cuts, stage.saved);
    gathered = {builder.collective({.kind = CollectiveKind::all_gather,
                                    .axis = stage.axis,
                                    .in = {builder.whole(stage.saved)},
                                    .out = {builder.whole(x)},
                                    .wire = options.dtype})};
  }
  const BufferId partial = stage.scratch("partial", stage.ranks * stage.cuts, stage.output);
  const OpId product = builder.gemm({.a = {builder.whole(stage.input)},
                                     .b = {builder.whole(stage.weight)},
                                     .out = {builder.whole(partial)},
                                     .waits = stage.ready,
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
                .waits = gathered,
                .transpose_a = true});
  return {scattered};
}

Done sliced_gemm_rs_backward(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const BufferId dy = stage.scratch("gathered", stage.ranks * stage.cuts, stage.input);  // slice after slice
  const auto gather = [&](std::int32_t i) {
    return builder.collective({.kind = CollectiveKind::all_gather,
                               .axis = stage.axis,
                               .in = {builder.rows_of(stage.input, i)},
                               .out = {builder.rows_of(dy, i * stage.ranks, stage.ranks)},
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
    done = {builder.gemm({.a = {builder.rows_of(dy, i * stage.ranks, stage.ranks)},
                          .b = {builder.whole(stage.weight)},
                          .out = slice_of_all_shards(stage, stage.output, i),
                          .waits = {here},
                          .transpose_b = true})};
  }
  builder.gemm({.a = all_slices(stage, stage.saved),
                .b = {builder.whole(dy)},
                .out = {builder.whole(stage.gradient)},
                .transpose_a = true});
  return done;
}

}  // namespace commfuse
