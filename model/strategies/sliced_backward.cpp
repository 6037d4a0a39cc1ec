// SPDX-License-Identifier: Apache-2.0
// The backward passes as Ascend CoC and Megatron-Core overlap them. The column-parallel pass is not sliced: its two
// GEMMs hide the two collectives. In the row-parallel pass the gather is sliced as in the forward pass, k = 4:
//
//   ag_gemm_backward   comm     |ag x      |rs dx     |
//                      compute  |dx partial|dw        |
//
//   gemm_rs_backward   comm     |ag0|ag1|ag2|ag3|
//                      compute      |dx0|dx1|dx2|dx3|dw            |          ag0 is the head
//
// Let c and w be the times of the GEMMs of dx and dw. ag_gemm_backward with gather g and scatter r has makespan max(c,
// g) + max(w, r); g is 0 if the gathered x was saved. With r the time to gather one slice and c' that of one slice's
// GEMM, gemm_rs_backward has makespan c' + (k-1) max(c', r) + r + w. One rank computes whole GEMMs and takes c + w.
//
// The gradient of the row-parallel weight is one GEMM of all tokens in the order in which they were gathered, slice
// after slice, so it reads x in strides.
#include "model/strategies/slices.h"
#include "model/strategies/strategies.h"
#include "model/strategies/whole_backward.h"

namespace commfuse {

Done sliced_ag_gemm_backward(const Stage& stage, const StrategyOptions& options) {
  return whole_ag_gemm_backward(stage, options, true);
}

Done sliced_gemm_rs_backward(const Stage& stage, const StrategyOptions& options) {
  if (stage.ranks == 1) {
    return backward_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const BufferId dy = stage.scratch("gathered", stage.ranks * stage.cuts, stage.input);  // slice after slice
  const OpId gemm = gather_ahead(stage, options, dy, [&](std::int32_t i, OpId arrived) {
    return builder.gemm({.a = slice(stage, dy, i),
                         .b = {builder.whole(stage.weight)},
                         .out = slice_of_all_shards(stage, stage.output, i),
                         .waits = {arrived},
                         .transpose_b = true});
  });
  builder.gemm({.a = all_slices(stage, stage.saved),
                .b = {builder.whole(dy)},
                .out = {builder.whole(stage.gradient)},
                .transpose_a = true});
  return {gemm};
}

}  // namespace commfuse
