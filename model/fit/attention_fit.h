// SPDX-License-Identifier: Apache-2.0
// Fits the parameters of model/cost/attention.h to measured attention calls.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/cost/attention.h"
#include "model/fit/fit_quality.h"
#include "model/fit/robust_fit.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

/// One call of a fused kernel on all SMs.
struct MeasuredAttention {
  AttentionSize size;
  Duration time{};
};

struct AttentionFit {
  AttentionParameters parameters;                  ///< each with its standard error and provenance
  std::vector<FittedParameter> fitted_parameters;  ///< all parameters, or with few sizes those that moved
  std::vector<std::string> left;           ///< parameters that few sizes cannot determine; their values are unchanged
  double distance = 0.0;                   ///< with few sizes: distance of the machine from its base (prior_fit.h)
  bool has_few = false;                    ///< few sizes: all rows are fitted and none is held out
  std::vector<MeasuredAttention> medians;  ///< with few sizes: the fitted rows, one per size
  FitQuality fitted;                       ///< on the rows of the fit
  FitQuality held_out;  ///< on the 20% of layers (heads, kv_heads, head_dim) that the fit has not seen
};

/// Fits by robust least squares on log(predicted / measured); rows of one layer count as one observation in the
/// standard errors. `machine` is the machine's name in the table (part of the key that selects the held-out rows),
/// `source` the table's name. If fewer than 30 sizes remain for the fit, all rows are fitted with the accelerator's own
/// parameters as the prior (few_rows.h). Requires at least one row, times above 0 and supported dtypes.
AttentionFit fit_attention(const Accelerator& accelerator, std::span<const MeasuredAttention> rows,
                           const std::string& machine, const std::string& source);

/// Returns the lines of a hardware file's `attention:` map that the fit determined, each indented by `indent` spaces.
std::string attention_yaml(const AttentionFit& fit, int indent);

}  // namespace commfuse
