// SPDX-License-Identifier: Apache-2.0
// Fits the parameters of model/cost/decode_attention.h to measured calls of attention in decoding.
#pragma once

#include <span>
#include <string>

#include "model/fit/attention_fit.h"
#include "model/fit/call_fit.h"
#include "model/hardware/accelerator.h"

namespace commfuse {

/// Returns whether `rows` determine the parameters: there are at least 60 sizes beyond the held-out rows, or the
/// accelerator has parameters for this cache, which are then the prior of few rows.
bool can_fit_decode_attention(const Accelerator& accelerator, std::span<const MeasuredAttention> rows,
                              const std::string& machine);

/// Fits as fit_attention() does. `size.seq` counts the keys of a sequence. All rows must have one `size.dtype`, that of
/// the cache. If the accelerator has parameters without an unpacked kernel, the fit has none either. Requires
/// can_fit_decode_attention() and times above 0.
AttentionFit fit_decode_attention(const Accelerator& accelerator, std::span<const MeasuredAttention> rows,
                                  const std::string& machine, const std::string& source);

/// Returns the lines of the hardware file's map for this cache that the fit determined, each indented by `indent`
/// spaces.
std::string decode_attention_yaml(const AttentionFit& fit, DType dtype, int indent);

}  // namespace commfuse
