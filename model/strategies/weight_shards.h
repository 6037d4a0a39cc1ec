// SPDX-License-Identifier: Apache-2.0
// Where the shards of a weight lie that is spread over data-parallel ranks: slice after slice, each in one shard a
// rank.
#pragma once

#include <cstdint>

#include "model/strategies/stage.h"

namespace commfuse {

class WeightShards {
 public:
  /// Of a stage of data parallelism.
  explicit WeightShards(const Stage& stage);

  /// Block rows of a shard.
  [[nodiscard]] std::int32_t width() const { return width_; }
  /// Where in the weight a shard of slice i begins: that of the rank `behind` before this one.
  [[nodiscard]] Index place(std::int32_t i, std::int32_t behind = 0) const;
  /// That shard.
  [[nodiscard]] Region shard(std::int32_t i, std::int32_t behind = 0) const;
  /// The shards of all ranks.
  [[nodiscard]] Region slice(std::int32_t i) const;
  /// The columns that slice i makes in a buffer of own tokens.
  [[nodiscard]] Region columns_of_slice(BufferId tokens, std::int32_t i) const;
  /// The columns that a shard makes in a buffer of own tokens.
  [[nodiscard]] Region columns_of_shard(BufferId tokens, const Index& place) const;

 private:
  const Stage& stage_;
  std::int32_t width_;
};

/// A weight_ag_gemm of one rank, which holds the whole weight.
Done weight_product_alone(const Stage& stage);
/// A gradient_rs of one rank: dx, then the gradient.
Done weight_gradient_alone(const Stage& stage);

}  // namespace commfuse
