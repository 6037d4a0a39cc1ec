// SPDX-License-Identifier: Apache-2.0
// The column-parallel backward pass with one gather and one scatter, its parts, and both kinds of backward pass on a
// single rank.
#pragma once

#include "model/strategies/options.h"
#include "model/strategies/stage.h"

namespace commfuse {

/// Adds the gather of x (unless the gathered x was saved), the GEMM of dx, the scatter of dx and the GEMM of the
/// gradient. If `overlapped`, the gather runs concurrently with the first GEMM and the scatter with the second;
/// otherwise each op waits for the previous one.
Done whole_ag_gemm_backward(const Stage& stage, const StrategyOptions& options, bool overlapped);

/// x of all ranks at an ag_gemm_backward site, in the order of the shards, and the ops after which it is complete.
struct GatheredInput {
  BufferId buffer{};
  std::vector<OpId> complete;
};

/// Adds one collective that gathers x; adds nothing and returns `waits` if the gathered x was saved.
GatheredInput gather_input(const Stage& stage, const StrategyOptions& options, const std::vector<OpId>& waits);

/// Adds the gradient of the weight as one GEMM, x^T dy. `x` and `dy` hold all tokens.
OpId whole_gradient(const Stage& stage, BufferId x, BufferId dy, const std::vector<OpId>& waits);

/// Adds the backward pass of either kind on a single rank, which holds all of x and dy: dx, then the gradient.
Done backward_alone(const Stage& stage);

}  // namespace commfuse
