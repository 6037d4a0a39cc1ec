// SPDX-License-Identifier: Apache-2.0
// Fits the parameters of model/cost/decode_attention.h to measured calls of attention in decoding.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/cost/decode_attention.h"
#include "model/fit/attention_fit.h"
#include "model/fit/fit_quality.h"
#include "model/fit/robust_fit.h"
#include "model/hardware/accelerator.h"

namespace commfuse {

struct DecodeAttentionFit {
  Accelerator accelerator;  ///< The given one with the fitted parameters, each with its standard error and provenance.
  std::vector<FittedParameter> fitted_parameters;  ///< all parameters, or with few sizes those that moved
  std::vector<std::string> left;           ///< parameters that few sizes cannot determine; their values are unchanged
  double distance = 0.0;                   ///< with few sizes: distance of the machine from its base (prior_fit.h)
  bool has_few = false;                    ///< few sizes: all rows are fitted and none is held out
  std::vector<MeasuredAttention> medians;  ///< with few sizes: the fitted rows, one per size
  FitQuality fitted;                       ///< on the rows of the fit
  FitQuality held_out;  ///< on the 20% of layers (heads, kv_heads, head_dim) that the fit has not seen
};

/// Returns whether `rows` determine the parameters: there are at least 60 sizes beyond the held-out rows, or the
/// accelerator has parameters for this cache, which are then the prior of few rows.
bool can_fit_decode_attention(const Accelerator& accelerator, std::span<const MeasuredAttention> rows,
                              const std::string& machine);

/// Fits by robust least squares on log(predicted / measured); rows of one layer count as one observation in the
/// standard errors. `size.seq` counts the keys of a sequence. All rows have one `size.dtype`, that of the cache.
/// `machine` and `source` are as in fit_attention(). If the accelerator has parameters without an unpacked kernel, the
/// fit has none either. Requires can_fit_decode_attention() and times above 0.
DecodeAttentionFit fit_decode_attention(const Accelerator& accelerator, std::span<const MeasuredAttention> rows,
                                        const std::string& machine, const std::string& source);

/// Returns the lines of the hardware file's map for this cache that the fit determined, each indented by `indent`
/// spaces.
std::string decode_attention_yaml(const DecodeAttentionFit& fit, DType dtype, int indent);

}  // namespace commfuse
