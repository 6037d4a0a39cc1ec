// SPDX-License-Identifier: Apache-2.0
// Fits the parameters of model/cost/expert_layer.h to measured calls of an expert layer.
#pragma once

#include <span>
#include <string>

#include "model/cost/expert_layer.h"
#include "model/fit/call_fit.h"
#include "model/hardware/accelerator.h"

namespace commfuse {

using MeasuredExpertLayer = MeasuredCall<ExpertLayerSize>;
using ExpertLayerFit = CallFit<ExpertLayerSize>;

/// Returns whether `rows` determine the parameters: the accelerator supports their dtype, and there are at least 60
/// sizes beyond the held-out rows, or the accelerator has parameters, which are then the prior of few rows.
bool can_fit_expert_layer(const Accelerator& accelerator, std::span<const MeasuredExpertLayer> rows,
                          const std::string& machine);

/// Fits by robust least squares on log(predicted / measured); rows of one layer count as one observation in the
/// standard errors. All rows must have one `size.dtype`. The cost of uneven loads is fitted only to rows with both
/// kinds of loads. `machine` and `source` are as in fit_attention(). Requires can_fit_expert_layer() and times above 0.
ExpertLayerFit fit_expert_layer(const Accelerator& accelerator, std::span<const MeasuredExpertLayer> rows,
                                const std::string& machine, const std::string& source);

/// Returns the lines of the hardware file's map for this dtype that the fit determined, each indented by `indent`
/// spaces.
std::string expert_layer_yaml(const ExpertLayerFit& fit, DType dtype, int indent);

}  // namespace commfuse
