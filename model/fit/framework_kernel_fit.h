// SPDX-License-Identifier: Apache-2.0
// Fits the parameters of model/cost/framework_kernel.h to measured memory-bound kernels of a framework.
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

/// One call on all SMs, without launch time. `op` is the table's word: part of the key that selects the held-out rows.
struct MeasuredFrameworkKernel {
  std::string op;
  FrameworkKernelSize size;
  Duration time{};
};

struct FrameworkKernelFit {
  /// The given accelerator with the fitted parameters, each with its standard error and provenance.
  Accelerator accelerator;
  std::vector<FittedParameter> fitted_parameters;  ///< all parameters, or with few sizes those that moved
  std::vector<std::string> left;  ///< parameters that few sizes cannot determine; their values are unchanged
  double distance = 0.0;          ///< with few sizes: distance of the machine from its base (prior_fit.h)
  bool has_few = false;           ///< few sizes: all rows are fitted and none is held out
  std::vector<MeasuredFrameworkKernel> medians;  ///< with few sizes: the fitted rows, one per size
  FitQuality fitted;                             ///< on the rows of the fit
  FitQuality held_out;                           ///< on the 20% of pairs (op, width) that the fit has not seen
};

/// Fits by robust least squares on log(predicted / measured); rows of one op and width count as one observation in the
/// standard errors. `machine` is the machine's name in the table (part of the key), `source` the table's name. If fewer
/// than 100 sizes remain for the fit, or one of the four kernels has none, all rows are fitted with the accelerator's
/// own parameters as the prior (few_rows.h); without framework_kernels, the prior is the accelerator's
/// memory_bound_efficiency. Requires at least one row, and times above 0.
FrameworkKernelFit fit_framework_kernels(const Accelerator& accelerator, std::span<const MeasuredFrameworkKernel> rows,
                                         const std::string& machine, const std::string& source);

/// Returns the lines of a hardware file's `framework_kernels:` map that the fit determined, each indented by `indent`
/// spaces; if the accelerator has no such map, the lines of the accelerator itself.
std::string framework_kernels_yaml(const FrameworkKernelFit& fit, int indent);

}  // namespace commfuse
