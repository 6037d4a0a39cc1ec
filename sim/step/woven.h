// SPDX-License-Identifier: Apache-2.0
// A forward pass of a whole model whose tokens are two halves: while one half computes, a kernel sums the other half
// over the tensor ranks, with residual and norm (TokenWeave, arXiv 2505.11329). model/strategies/tokenweave.cpp has the
// schedule of MLPs.
#pragma once

#include <string>

#include "model/units.h"
#include "sim/step/layer_cost.h"

namespace commfuse {

/// Returns whether the implementation sums halves of the tokens inside other kernels' time.
bool weaves(const Implementation& kernels);

/// Returns the reason why the implementation cannot weave the pass, with the remedy; empty if it can. Requires an
/// implementation that weaves.
std::string why_not_woven(const StepPoint& point, const Implementation& kernels);

/// Returns the time of all layers, without embedding and logits, and the time of the host to issue their kernels.
/// Requires a point whose implementation (StepPoint::implemented) weaves it.
struct WovenPass {
  Duration device{};
  Duration host{};
};
WovenPass woven_pass(const StepPoint& point, SiteTimes& sites);

}  // namespace commfuse
