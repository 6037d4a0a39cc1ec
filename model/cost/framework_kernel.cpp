// SPDX-License-Identifier: Apache-2.0
#include "model/cost/framework_kernel.h"

#include <algorithm>

#include "model/check.h"
#include "model/cost/memory_bound.h"
#include "model/cost/op_time.h"

namespace commfuse {

namespace {

constexpr std::int64_t blocks_on_an_sm = 2;  // an SM holds 2,048 threads, a block 1,024
constexpr std::int64_t threads_of_block = 1024;

std::int64_t parts(std::int64_t whole, std::int64_t part) { return (whole + part - 1) / part; }

double seconds_of_rows(const Accelerator& accelerator, const Parameter<double>& efficiency,
                       const Parameter<Duration>& step, const FrameworkKernelSize& size) {
  const double stream =
      static_cast<double>(size.traffic.count) / (accelerator.hbm_bandwidth.value.value * efficiency.value);
  const std::int64_t waves = parts(size.rows, blocks_on_an_sm * accelerator.sms);
  const double blocks = static_cast<double>(waves * parts(size.width, threads_of_block)) * to_seconds(step.value);
  return stream <= 0.0 && blocks <= 0.0 ? 0.0 : root_of_fourths(stream, blocks);
}

double seconds_of_sum(const Accelerator& accelerator, const FrameworkKernels& kernels, Bytes traffic) {
  const auto bytes = static_cast<double>(traffic.count);
  const double cached = std::min(bytes, cached_share_of_l2 * static_cast<double>(accelerator.l2_capacity.count));
  return (bytes - kernels.cached_saving.value * cached) /
         (accelerator.hbm_bandwidth.value.value * kernels.sum_efficiency.value);
}

double seconds(const Accelerator& accelerator, const FrameworkKernels& kernels, const FrameworkKernelSize& size) {
  switch (size.kernel) {
    case FrameworkKernel::sum: return seconds_of_sum(accelerator, kernels, size.traffic);
    case FrameworkKernel::norm: return seconds_of_rows(accelerator, kernels.norm_efficiency, kernels.norm_step, size);
    case FrameworkKernel::activation:
      return seconds_of_rows(accelerator, kernels.activation_efficiency, kernels.activation_step, size);
    case FrameworkKernel::rotation:
      return seconds_of_rows(accelerator, kernels.rotation_efficiency, kernels.rotation_step, size);
  }
  return 0.0;
}

}  // namespace

Duration framework_kernel_time(const Accelerator& accelerator, const FrameworkKernelSize& size) {
  check(size.rows >= 1 && size.width >= 1 && size.traffic.count >= 0,
        "a kernel has rows and its traffic is not negative");
  if (!accelerator.framework_kernels) {
    return memory_bound_time(accelerator, size.traffic, accelerator.sms);
  }
  const FrameworkKernels& kernels = *accelerator.framework_kernels;
  return kernels.floor.value + op_time(seconds(accelerator, kernels, size), "a memory-bound kernel");
}

}  // namespace commfuse
