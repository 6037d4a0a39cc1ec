// SPDX-License-Identifier: Apache-2.0
// FuseRS over the shards of a weight's gradient: dw = dy^T x sums over the tokens of all ranks. Every rank computes its
// part of one shard after another, its own shard last, and sends each part while it computes the next one. The GEMM of
// dx follows and hides the remaining transfers; if it is too short, the next layer helps to hide them. p[j] is the
// rank's part of shard j of dw, m[j] a running sum:
//
//            step 0     step 1     step 2     step 3                          (4 ranks, seen from rank r)
//   compute  p[r-1]     p[r-2]     p[r-3]     p[r]       dx ....       (ring; direct: p[r+1], p[r+2], p[r+3], p[r])
//   aux                 +          +          +
//   comm     idle       m[r-1] ->  m[r-2] ->  m[r-3] ->
//
// The direct form adds up all parts at the end, on the aux lane. Let c be the time of a GEMM of dw, p of a transfer, a
// of an add and d of dx. The ring with its adds on aux completes dw at E(N-1), where E(0) = c and
// E(i) = max((i+1) c, E(i-1) + p) + a; its makespan is max(N c + d, E(N-1)). Adds on the compute lane take time between
// the GEMMs, and the last add comes after dx.
#include "model/strategies/fuse_steps.h"
#include "model/strategies/strategies.h"
#include "model/strategies/weight_shards.h"

namespace commfuse {

Done fuse_gradient_rs(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const WeightShards weight(stage);
  ScatterSteps scatter(stage, options, stage.gradient, ScatterSteps::Slots::two);
  for (std::int32_t step = 0; step < stage.ranks; ++step) {
    const Index shard = scatter.shard(step) * weight.width();
    scatter.take(step, builder.gemm({.a = {weight.columns_of_shard(stage.input, shard)},
                                     .b = {builder.whole(stage.saved)},
                                     .out = {scatter.place(step)},
                                     .waits = step == 0 ? stage.ready : scatter.free(step),
                                     .transpose_a = true}));
  }
  const OpId done = builder.gemm(
      {.a = {builder.whole(stage.input)}, .b = {builder.whole(stage.weight)}, .out = {builder.whole(stage.output)}});
  scatter.finish(LaneKind::aux);
  return {done};
}

}  // namespace commfuse
