// SPDX-License-Identifier: Apache-2.0
// Fits the parameters of model/cost/latent_decode.h to measured calls of latent attention in decoding.
#pragma once

#include <span>
#include <string>

#include "model/cost/latent_decode.h"
#include "model/fit/call_fit.h"
#include "model/hardware/accelerator.h"

namespace commfuse {

using MeasuredLatentDecode = MeasuredCall<LatentDecodeSize>;
using LatentDecodeFit = CallFit<LatentDecodeSize>;

/// Returns whether `rows` determine the parameters: there are at least 60 sizes beyond the held-out rows, or the
/// accelerator has parameters for this cache, which are then the prior of few rows.
bool can_fit_latent_decode(const Accelerator& accelerator, std::span<const MeasuredLatentDecode> rows,
                           const std::string& machine);

/// Fits by robust least squares on log(predicted / measured); rows with the same heads and batch count as one
/// observation in the standard errors. All rows must have shared keys and one `size.dtype`. `machine` and `source` are
/// as in fit_attention(). `reread` is fitted only if it is above 0 in the accelerator, whose kernels then use blocks of
/// 16 heads for up to 32 heads. Requires can_fit_latent_decode() and times above 0.
LatentDecodeFit fit_latent_decode(const Accelerator& accelerator, std::span<const MeasuredLatentDecode> rows,
                                  const std::string& machine, const std::string& source);

/// Returns the lines of the hardware file's map for this cache that the fit determined, each indented by `indent`
/// spaces.
std::string latent_decode_yaml(const LatentDecodeFit& fit, DType dtype, int indent);

}  // namespace commfuse
