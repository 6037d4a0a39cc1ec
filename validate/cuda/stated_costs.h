// SPDX-License-Identifier: Apache-2.0
// Rough times of GPU work before any measurement. They budget a run and predict nothing.
#pragma once

#include "validate/cuda/driver.h"

namespace commfuse::validate {

/// Assumed costs, not measured, roughly those of an H100. Every call costs at least a launch.
struct StatedCosts {
  Duration launch = std::chrono::microseconds(5);
  FlopsPerSecond library_products{4e14};  ///< GEMMs of cuBLASLt in bf16.
  FlopsPerSecond exact_products{2e11};    ///< Kernels that sum in ascending order.
  BytesPerSecond memory{2e12};
  BytesPerSecond host_link{1e10};
  Duration allocation = std::chrono::microseconds(200);
};

Duration stated_time(const StatedCosts& costs, const ProductCall& call);
Duration stated_time(const StatedCosts& costs, const FunctionCall& call);
Duration stated_time(const StatedCosts& costs, const AttentionCall& call);
Duration stated_time(const StatedCosts& costs, const MoveCall& call);
/// Returns the time to read or write `bytes` of device memory, at least that of a launch.
Duration stated_memory_time(const StatedCosts& costs, Bytes bytes);
/// Returns the time of a copy between device and host.
Duration stated_host_time(const StatedCosts& costs, Bytes bytes);

}  // namespace commfuse::validate
