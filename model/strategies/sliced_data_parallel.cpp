// SPDX-License-Identifier: Apache-2.0
// Data parallelism with sharded weights in k slices per weight, which frameworks call buckets. A slice is gathered
// under the GEMM of the previous slice, even across layers; a gradient is scattered under the next computation, even of
// the next layer (Rajbhandari et al. 2020, ZeRO; Zhao et al. 2023, FSDP, section 3.3). Two layers, k = 2:
//
//   comm     |ag1|ag1|ag2|ag2|                   |rs2|rs2|           |rs1|rs1|
//   compute      |y1 |y1 |y2 |y2 |dx2    |dw2|dw2|dx1    |dw1|dw1|
//
// The first gather is the head, the last scatter the tail. With r the time of the collective of one slice and c' that
// of one slice's GEMM, a single forward layer has makespan c' + (k-1) max(c', r) + r. One rank slices nothing.
#include "model/strategies/strategies.h"
#include "model/strategies/weight_shards.h"

namespace commfuse {

Done sliced_weight_ag_gemm(const Stage& stage, const StrategyOptions& options) {
  if (stage.ranks == 1) {
    return weight_gemm_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const WeightShards weight(stage);
  const auto gather = [&](std::int32_t i) {
    return builder.collective({.kind = CollectiveKind::all_gather,
                               .axis = stage.axis,
                               .in = {weight.shard({.slice = i})},
                               .out = {weight.slice(i)},
                               .wire = options.dtype});
  };
  Done done;
  OpId arrived = gather(0);
  for (std::int32_t i = 0; i < stage.cuts; ++i) {
    std::vector<OpId> ready = i == 0 ? stage.ready : std::vector<OpId>{};
    ready.push_back(arrived);
    if (i + 1 < stage.cuts) {
      arrived = gather(i + 1);
    }
    done = {builder.gemm({.a = {builder.whole(stage.input)},
                          .b = {weight.slice(i)},
                          .out = {weight.columns_of_slice(stage.output, i)},
                          .waits = ready,
                          .transpose_b = true})};
  }
  return done;
}

Done sliced_gradient_rs(const Stage& stage, const StrategyOptions&) {
  if (stage.ranks == 1) {
    return weight_gradient_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const WeightShards weight(stage);
  const std::int32_t rows = stage.ranks * weight.width();
  const BufferId partial = stage.scratch("partial", stage.cuts * rows, stage.gradient);
  const OpId done = builder.gemm({.a = {builder.whole(stage.input)},
                                  .b = {builder.whole(stage.weight)},
                                  .out = {builder.whole(stage.output)},
                                  .waits = stage.ready});
  for (std::int32_t i = 0; i < stage.cuts; ++i) {
    const Region slice = builder.rows_of(partial, i * rows, rows);
    const OpId gemm = builder.gemm({.a = {weight.columns_of_slice(stage.input, i)},
                                    .b = {builder.whole(stage.saved)},
                                    .out = {slice},
                                    .transpose_a = true});
    builder.collective({.kind = CollectiveKind::reduce_scatter,
                        .axis = stage.axis,
                        .in = {slice},
                        .out = {builder.rows_of(stage.gradient, i * weight.width(), weight.width())},
                        .wire = builder.buffer_of(stage.gradient).dtype,
                        .waits = {gemm}});
  }
  return {done};
}

}  // namespace commfuse
