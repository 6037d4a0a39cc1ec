// SPDX-License-Identifier: Apache-2.0
// Computation of an mlp_ar site, for a range of token rows at a time.
#pragma once

#include "model/strategies/stage.h"

namespace commfuse {

class MlpBlock {
 public:
  /// Adds the buffers between the ops of the block. `stage` must outlive the block.
  explicit MlpBlock(const Stage& stage);

  /// Adds the first GEMM and the activation of `rows` block rows from `first`.
  OpId activate(std::int32_t first, std::int32_t rows, const std::vector<OpId>& waits) const;
  /// Adds the second GEMM of these rows: this rank's contribution to their sum over the ranks. Requires a previous
  /// activate() of the same rows.
  OpId multiply(std::int32_t first, std::int32_t rows) const;
  /// Returns the place of this rank's contributions to these rows.
  [[nodiscard]] Region partial(std::int32_t first, std::int32_t rows) const;
  /// Adds two ops: the sum of `sum` and the stream's rows starting at `row`, and the norm of that sum, which goes to
  /// `normed`.
  OpId add_and_norm(Lane lane, const Region& sum, Index row, const Region& normed,
                    const std::vector<OpId>& waits) const;
  /// Adds the whole block of a single rank, which has no sum over ranks.
  [[nodiscard]] Done alone() const;

 private:
  const Stage& stage_;
  BufferId up_{}, activated_{}, partial_{};
};

}  // namespace commfuse
