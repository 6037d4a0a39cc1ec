// SPDX-License-Identifier: Apache-2.0
// Fits the parameters of model/cost/expert_layer.h to measured calls of a layer of experts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/cost/expert_layer.h"
#include "model/fit/fit_quality.h"
#include "model/fit/robust_fit.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

struct MeasuredExpertLayer {
  ExpertLayerSize size;
  Duration time;
};

struct ExpertLayerFit {
  Accelerator accelerator;  ///< The given one with the fitted parameters, each with its standard error and provenance.
  std::vector<FittedParameter> fitted_parameters;  ///< all parameters, or with few sizes those that moved
  std::vector<std::string> left;             ///< parameters that few sizes cannot determine; their values are unchanged
  double distance = 0.0;                     ///< with few sizes: distance of the machine from its base (prior_fit.h)
  bool has_few = false;                      ///< few sizes: all rows are fitted and none is held out
  std::vector<MeasuredExpertLayer> medians;  ///< with few sizes: the fitted rows, one per size
  FitQuality fitted;                         ///< on the rows of the fit
  FitQuality held_out;  ///< on the 20% of layers (widths, experts, their GPUs and loads) that the fit has not seen
};

/// Returns whether `rows` determine the parameters: the accelerator supports their dtype, and there are at least 60
/// sizes beyond the held-out rows, or the accelerator has parameters, which are then the prior of few rows.
bool can_fit_expert_layer(const Accelerator& accelerator, std::span<const MeasuredExpertLayer> rows,
                          const std::string& machine);

/// Fits by robust least squares on log(predicted / measured); rows of one layer count as one observation in the
/// standard errors. All rows have one `size.dtype`. The cost of uneven loads is fitted only to rows with both kinds of
/// loads. `machine` and `source` are as in fit_attention(). Requires can_fit_expert_layer() and times above 0.
ExpertLayerFit fit_expert_layer(const Accelerator& accelerator, std::span<const MeasuredExpertLayer> rows,
                                const std::string& machine, const std::string& source);

/// Returns the lines of the hardware file's map for this dtype that the fit determined, each indented by `indent`
/// spaces.
std::string expert_layer_yaml(const ExpertLayerFit& fit, DType dtype, int indent);

}  // namespace commfuse
