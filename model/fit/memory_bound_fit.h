// SPDX-License-Identifier: Apache-2.0
// Fits the parameters of model/cost/memory_bound.h to measured copies and adds.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/fit/robust_fit.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

/// One kernel on all SMs, without launch time.
struct MeasuredTraffic {
  Bytes traffic;  ///< bytes read and written
  Duration time{};
};

struct MemoryBoundFit {
  /// The given accelerator, with kernel_floor and memory_bound_efficiency fitted, and with the rate of the fastest row
  /// as hbm_bandwidth and sm_bandwidth.
  Accelerator accelerator;
  RobustFit fit;
};

/// Fits by robust least squares on log(predicted / measured). Requires at least six rows with traffic and times above
/// 0.
MemoryBoundFit fit_memory_bound(const Accelerator& accelerator, std::span<const MeasuredTraffic> rows,
                                const std::string& source);

/// Returns the lines of a hardware file's `accelerator:` map that the fit changes, each indented by `indent` spaces.
std::string memory_bound_yaml(const Accelerator& accelerator, int indent);

}  // namespace commfuse
