// SPDX-License-Identifier: Apache-2.0
// The column-parallel backward pass with one gather and one scatter, and what is left of either pass on one rank.
#pragma once

#include "model/strategies/options.h"
#include "model/strategies/stage.h"

namespace commfuse {

/// Gather x, unless it was saved gathered; product; scatter dx; gradient. `overlapped`: the gather goes beside the
/// product and the scatter beside the gradient; else each waits for the one before.
Done whole_ag_gemm_backward(const Stage& stage, const StrategyOptions& options, bool overlapped);

/// Either backward pass of one rank, which holds all of x and dy: dx, then the gradient.
Done backward_alone(const Stage& stage);

}  // namespace commfuse
