// SPDX-License-Identifier: Apache-2.0
// From measured attention calls to the parameters of model/cost/attention.h.
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
  AttentionParameters parameters;                  ///< Each with its standard error and provenance.
  std::vector<FittedParameter> fitted_parameters;  ///< Of few sizes only those that moved.
  std::vector<std::string> left;                   ///< Names of those that few sizes do not decide: as they were.
  double distance = 0.0;                   ///< Of few sizes: how far the machine seems from its base (prior_fit.h).
  bool has_few = false;                    ///< Every row is fitted, none is held back.
  std::vector<MeasuredAttention> medians;  ///< Of few sizes: the rows that were fitted, one a size.
  FitQuality fitted;                       ///< On the rows of the fit.
  FitQuality held_back;  ///< On one layer (heads, kv_heads, head_dim) in five, which the fit has not seen.
};

/// Robust least squares on log(predicted / measured); rows of one layer count as one observation in the standard
/// errors. `machine` is what the table calls it (part of the key that chooses the held-back rows), `source` the table's
/// name. Where fewer than 30 sizes are left to fit, all rows are fitted with the accelerator's own parameters as the
/// prior (few_rows.h). Requires a row, times above 0 and dtypes that are supported.
AttentionFit fit_attention(const Accelerator& accelerator, std::span<const MeasuredAttention> rows,
                           const std::string& machine, const std::string& source);

/// The lines of a hardware file's `attention:` map that the fit decided, each behind `indent` spaces.
std::string attention_yaml(const AttentionFit& fit, int indent);

}  // namespace commfuse
