// SPDX-License-Identifier: Apache-2.0
// FuseAG over the shards of a weight instead of the shards of the tokens: every rank multiplies its own tokens by the
// shard that it holds while the next shard arrives. Each shard produces separate columns, so no sum is split. w[r] is
// the shard of rank r:
//
//            step 0     step 1     step 2     step 3          (4 ranks, seen from rank r)
//   compute  y[:,r]     y[:,r-1]   y[:,r-2]   y[:,r-3]
//   comm     w[r] ->    w[r-1] ->  w[r-2] ->  idle
//
// In the direct form every rank sends its own shard directly to all other ranks. No transfer waits for a GEMM, so the
// next layer's shards arrive under this layer's GEMMs. With the times c of a GEMM and p of a transfer, the makespan is
// c + (N-1) max(c, p).
#include "model/strategies/fuse_steps.h"
#include "model/strategies/strategies.h"
#include "model/strategies/weight_shards.h"

namespace commfuse {

Done fuse_weight_ag_gemm(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const WeightShards weight(stage);
  std::vector<Operand> places;
  for (std::int32_t behind = 0; behind < stage.ranks; ++behind) {
    places.push_back({weight.shard({.behind = behind})});
  }
  std::vector<OpId> arrived = stage.ready;
  Done done;
  for (std::int32_t step = 0; step < stage.ranks; ++step) {
    const std::vector<OpId> ready = arrived;
    if (step + 1 < stage.ranks) {
      arrived = {gather_step(stage, options, step, places, {})};
    }
    done = {builder.gemm({.a = {builder.whole(stage.input)},
                          .b = places[static_cast<std::size_t>(step)],
                          .out = {weight.columns_of_shard(stage.output, weight.place({.behind = step}))},
                          .waits = ready,
                          .transpose_b = true})};
  }
  return done;
}

}  // namespace commfuse
