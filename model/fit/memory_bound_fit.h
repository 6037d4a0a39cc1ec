// SPDX-License-Identifier: Apache-2.0
// From measured copies and adds to what model/cost/memory_bound.h prices them by.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/fit/robust_fit.h"
#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

/// One kernel on all SMs, launch not counted.
struct MeasuredTraffic {
  Bytes traffic;  ///< Read and written.
  Duration time{};
};

struct MemoryBoundFit {
  /// The one given, with kernel_floor and memory_bound_efficiency fitted, and as hbm_bandwidth and sm_bandwidth the
  /// fastest of all rows.
  Accelerator accelerator;
  RobustFit fit;
};

/// Robust least squares on log(predicted / measured). Requires at least six rows with traffic and times above 0.
MemoryBoundFit fit_memory_bound(const Accelerator& accelerator, std::span<const MeasuredTraffic> rows,
                                const std::string& source);

/// The lines of a hardware file's `accelerator:` map that it changes, each behind `indent` spaces.
std::string memory_bound_yaml(const Accelerator& accelerator, int indent);

}  // namespace commfuse
