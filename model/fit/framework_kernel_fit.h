// SPDX-License-Identifier: Apache-2.0
// From measured memory-bound kernels of a framework to the parameters of model/cost/framework_kernel.h.
#pragma once

#include <span>
#include <string>
#include <vector>

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
  Accelerator accelerator;  ///< The one given with what was fitted, each with its standard error and provenance.
  std::vector<FittedParameter> fitted_parameters;  ///< Of few sizes only those that moved.
  std::vector<std::string> left;                   ///< Names of those that few sizes do not decide: as they were.
  double distance = 0.0;  ///< Of few sizes: how far the machine seems from its base (prior_fit.h).
  bool has_few = false;   ///< Every row is fitted, none is held back.
  std::vector<MeasuredFrameworkKernel> medians;  ///< Of few sizes: the rows that were fitted, one a size.
  FitQuality fitted;                             ///< On the rows of the fit.
  FitQuality held_back;                          ///< On one (op, width) in five, which the fit has not seen.
};

/// Robust least squares on log(predicted / measured); rows of one op and width count as one observation in the
/// standard errors. `machine` is what the table calls it (part of the key), `source` the table's name. Where fewer
/// than 100 sizes are left to fit, or none of one of the four kernels, all rows are fitted with the accelerator's own
/// parameters as the prior (few_rows.h); where it has no framework_kernels, that is its memory_bound_efficiency.
/// Requires a row, and times above 0.
FrameworkKernelFit fit_framework_kernels(const Accelerator& accelerator, std::span<const MeasuredFrameworkKernel> rows,
                                         const std::string& machine, const std::string& source);

/// The lines of a hardware file's `framework_kernels:` map that the fit decided, each behind `indent` spaces; where the
/// accelerator has no such map, those of its own.
std::string framework_kernels_yaml(const FrameworkKernelFit& fit, int indent);

}  // namespace commfuse
