// SPDX-License-Identifier: Apache-2.0
// Positions of the shards of a weight that is sharded over data-parallel ranks: slice after slice, each with one shard
// per rank.
#pragma once

#include <cstdint>

#include "model/strategies/stage.h"

namespace commfuse {

/// A rank's shard of a slice.
struct WeightShard {
  std::int32_t slice = 0;
  std::int32_t behind = 0;  ///< Number of ranks from this rank back to the owner of the shard.
};

class WeightShards {
 public:
  /// Requires `stage` to be a site under data parallelism. `stage` must outlive this object.
  explicit WeightShards(const Stage& stage);

  /// Returns the number of block rows of a shard.
  [[nodiscard]] std::int32_t width() const { return width_; }
  /// Returns the first row of a shard in the weight.
  [[nodiscard]] Index place(const WeightShard& shard) const;
  /// Returns the region of a shard in the weight.
  [[nodiscard]] Region shard(const WeightShard& shard) const;
  /// Returns slice i: the shards of all ranks.
  [[nodiscard]] Region slice(std::int32_t i) const;
  /// Returns the columns of a buffer of own tokens that slice i computes.
  [[nodiscard]] Region columns_of_slice(BufferId tokens, std::int32_t i) const;
  /// Returns the columns of a buffer of own tokens that the shard at row `place` of the weight computes.
  [[nodiscard]] Region columns_of_shard(BufferId tokens, const Index& place) const;

 private:
  const Stage& stage_;
  std::int32_t width_;
};

/// Adds the weight_ag_gemm of a single rank, which holds the whole weight.
Done weight_gemm_alone(const Stage& stage);
/// Adds the gradient_rs of a single rank: dx, then the gradient.
Done weight_gradient_alone(const Stage& stage);

}  // namespace commfuse
