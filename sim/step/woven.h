// SPDX-License-Identifier: Apache-2.0
// A forward pass of a whole model whose tokens are two halves: while one half computes, a kernel sums the other half
// over the tensor ranks, with residual and norm (TokenWeave, arXiv 2505.11329). model/strategies/tokenweave.cpp has the
// schedule of MLPs.
#pragma once

#include <string>

#include "model/units.h"
#include "sim/step/layer_cost.h"

namespace commfuse {

/// Returns whether the implementation runs the all-reduces of a pass.
bool replaces_sums(const Implementation& kernels);
/// Returns whether the implementation also halves the tokens, so that sums of one half run under the kernels of the
/// other.
bool weaves(const Implementation& kernels);

/// Returns the reason why the implementation cannot run the all-reduces of the pass, with the remedy; empty if it can.
/// Requires replaces_sums(kernels).
std::string why_no_sums(const StepPoint& point, const Implementation& kernels);

struct WovenPass {
  Duration device{};
  Duration host{};  ///< Host time to issue all kernels.
};
/// Returns the time of all layers, without embedding and logits. Requires `point` to have an implementation that weaves
/// (StepPoint::implemented).
WovenPass woven_pass(const StepPoint& point, SiteTimes& sites);

}  // namespace commfuse
