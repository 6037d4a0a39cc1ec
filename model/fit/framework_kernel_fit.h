// SPDX-License-Identifier: Apache-2.0
// From measured memory-bound kernels of a framework to the parameters of model/cost/framework_kernel.h.
#pragma once

#include <span>
#include <string>

#include "model/cost/framework_kernel.h"
#include "model/fit/fit_quality.h"
#include "model/fit/robust_fit.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

/// One call on all SMs, launch not counted. `op` is the table's word: part of the key that chooses the held-back rows.
struct MeasuredFrameworkKernel {
  std::string op;
  FrameworkKernelSize size;
  Duration time{};
};

struct FrameworkKernelFit {
  FrameworkKernels parameters;  ///< Each with its standard error and provenance.
  RobustFit fit;
  FitQuality fitted;     ///< On the rows of the fit.
  FitQuality held_back;  ///< On one (op, width) in five, which the fit has not seen.
};

/// Robust least squares on log(predicted / measured); rows of one op and width count as one observation in the
/// standard errors. `machine` is what the table calls it (part of the key), `source` the table's name. Throws
/// ConfigError when fewer than 100 rows are left to fit, or none of one of the four kernels. Requires times above 0.
FrameworkKernelFit fit_framework_kernels(const Accelerator& accelerator, std::span<const MeasuredFrameworkKernel> rows,
                                         const std::string& machine, const std::string& source);

/// The lines of a hardware file's `framework_kernels:` map, each behind `indent` spaces.
std::string framework_kernels_yaml(const FrameworkKernels& parameters, int indent);

}  // namespace commfuse
