// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/weight_shards.h"

namespace commfuse {

WeightShards::WeightShards(const Stage& stage)
    : stage_(stage), width_(stage.builder.buffer_of(stage.weight).rows.blocks / (stage.ranks * stage.cuts)) {}

Index WeightShards::place(const WeightShard& shard) const {
  return (along(stage_.builder.mesh(), stage_.axis, -shard.behind) + shard.slice * stage_.ranks) * width_;
}

Region WeightShards::shard(const WeightShard& shard) const {
  return stage_.builder.rows_of(stage_.weight, place(shard), width_);
}

Region WeightShards::slice(std::int32_t i) const {
  return stage_.builder.rows_of(stage_.weight, i * stage_.ranks * width_, stage_.ranks * width_);
}

Region WeightShards::columns_of_slice(BufferId tokens, std::int32_t i) const {
  return {tokens, 0, i * stage_.ranks * width_, stage_.builder.buffer_of(tokens).rows.blocks, stage_.ranks * width_};
}

Region WeightShards::columns_of_shard(BufferId tokens, const Index& place) const {
  return {tokens, 0, place, stage_.builder.buffer_of(tokens).rows.blocks, width_};
}

Done weight_gemm_alone(const Stage& stage) {
  ProgramBuilder& builder = stage.builder;
  return {builder.gemm({.a = {builder.whole(stage.input)},
                        .b = {builder.whole(stage.weight)},
                        .out = {builder.whole(stage.output)},
                        .waits = stage.ready,
                        .transpose_b = true})};
}

Done weight_gradient_alone(const Stage& stage) {
  ProgramBuilder& builder = stage.builder;
  const OpId gemm = builder.gemm({.a = {builder.whole(stage.input)},
                                  .b = {builder.whole(stage.weight)},
                                  .out = {builder.whole(stage.output)},
                                  .waits = stage.ready});
  builder.gemm({.a = {builder.whole(stage.input)},
                .b = {builder.whole(stage.saved)},
                .out = {builder.whole(stage.gradient)},
                .transpose_a = true});
  return {gemm};
}

}  // namespace commfuse
