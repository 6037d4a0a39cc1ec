// SPDX-License-Identifier: Apache-2.0
// Memory-bound kernels of serving frameworks: the sum of two tensors, and kernels that give each row a thread block of
// its own (norm, activation, rotation).
//
//   sum  = floor + (bytes - cached saving x min(bytes, 0.6 L2)) / (HBM bandwidth x sum efficiency)
//   rows = floor + (stream^4 + blocks^4)^(1/4)
//   stream = bytes / (HBM bandwidth x efficiency)
//   blocks = ceil(rows / (2 sms)) x ceil(width / 1024) x step
//
// Two blocks of 1024 threads are resident on an SM; each walks its row 1024 elements at a time and waits for memory at
// every step (vLLM, csrc/activation_kernels.cu and csrc/layernorm_kernels.cu, 2023), so with few rows the number of
// steps, not the number of bytes, determines the time. Public tables show the waves: an H100 normalizes 192 rows of
// 4,096 in 4 us and 320 in 7 us.
#pragma once

#include <cstdint>

#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

enum class FrameworkKernel : std::uint8_t { sum, norm, activation, rotation };

/// One call of a kernel. Requires rows, width >= 1 and traffic >= 0.
struct FrameworkKernelSize {
  FrameworkKernel kernel = FrameworkKernel::sum;
  std::int64_t rows = 1;
  std::int64_t width = 1;  ///< Elements of a row that one block writes.
  Bytes traffic{};         ///< Bytes read and written for all rows, each counted once.
};

/// Returns the time on all SMs. If the accelerator has no `framework_kernels`, returns `memory_bound_time`.
Duration framework_kernel_time(const Accelerator& accelerator, const FrameworkKernelSize& size);

}  // namespace commfuse
