// SPDX-License-Identifier: Apache-2.0
// The compute of an mlp_ar site, some rows of tokens at a time.
#pragma once

#include "model/strategies/stage.h"

namespace commfuse {

class MlpBlock {
 public:
  /// Adds the buffers between its ops. Keeps a reference to the stage.
  explicit MlpBlock(const Stage& stage);

  /// The first product and the activation of `rows` block rows from `first`.
  OpId activate(std::int32_t first, std::int32_t rows, const std::vector<OpId>& waits) const;
  /// The second product of the same rows, a contribution to their sum over the ranks. Comes after activate().
  OpId multiply(std::int32_t first, std::int32_t rows) const;
  /// Those contributions.
  [[nodiscard]] Region partial(std::int32_t first, std::int32_t rows) const;
  /// The stream plus `sum` from a row of the site's, and the norm of that.
  OpId add_and_norm(Lane lane, const Region& sum, Index row, const Region& normed,
                    const std::vector<OpId>& waits) const;
  /// The whole block of one rank, which has nobody to sum with.
  [[nodiscard]] Done alone() const;

 private:
  const Stage& stage_;
  BufferId up_{}, activated_{}, partial_{};
};

}  // namespace commfuse
