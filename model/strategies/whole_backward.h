// SPDX-License-Identifier: Apache-2.0
// The column-parallel backward pass with one gather and one scatter, and either backward pass on one rank.
#pragma once

#include "model/strategies/options.h"
#include "model/strategies/stage.h"

namespace commfuse {

/// Adds the gather of x, unless it was saved gathered; the GEMM; the scatter of dx; the gradient. `overlapped`: the
/// gather runs beside the GEMM and the scatter beside the gradient; otherwise each waits for the one before.
Done whole_ag_gemm_backward(const Stage& stage, const StrategyOptions& options, bool overlapped);

/// Adds either backward pass of one rank, which holds all of x and dy: dx, then the gradient.
Done backward_alone(const Stage& stage);

}  // namespace commfuse
