// SPDX-License-Identifier: Apache-2.0
// Fits the parameters of model/cost/quantization.h to measured calls of quantization.
#pragma once

#include <span>
#include <string>

#include "model/cost/quantization.h"
#include "model/fit/call_fit.h"
#include "model/hardware/accelerator.h"

namespace commfuse {

using MeasuredQuantization = MeasuredCall<QuantizationSize>;
using QuantizationFit = CallFit<QuantizationSize>;

/// Returns whether `rows` determine the parameters: there are rows of both parts and at least 60 sizes beyond the
/// held-out rows, or the accelerator has parameters, which are then the prior of few rows.
bool can_fit_quantization(const Accelerator& accelerator, std::span<const MeasuredQuantization> rows,
                          const std::string& machine);

/// Fits by robust least squares on log(predicted / measured); rows with the same width count as one observation in the
/// standard errors. Parameters of a part without rows stay as they are. `machine` and `source` are as in
/// fit_attention(). Requires can_fit_quantization() and times above 0.
QuantizationFit fit_quantization(const Accelerator& accelerator, std::span<const MeasuredQuantization> rows,
                                 const std::string& machine, const std::string& source);

/// Returns the lines of the hardware file's map that the fit determined, each indented by `indent` spaces.
std::string quantization_yaml(const QuantizationFit& fit, DType dtype, int indent);

}  // namespace commfuse
