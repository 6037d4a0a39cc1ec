// SPDX-License-Identifier: Apache-2.0
#include "model/cost/state_space.h"

#include <algorithm>

#include "model/check.h"
#include "model/cost/op_time.h"

namespace commfuse {

Flops scan_flops(const ScanSize& size) {
  if (size.recurrence == Recurrence::gated_delta) {
    const std::int64_t flops_per_head =
        size.chunk * (5 * size.state + 2 * size.head_dim + size.chunk) + 6 * size.state * size.head_dim;
    return {static_cast<double>(size.tokens) * static_cast<double>(size.heads * flops_per_head)};
  }
  const std::int64_t inside = size.chunk * (2 * size.state * size.groups + size.head_dim * size.heads);
  const std::int64_t states = 4 * size.state * size.head_dim * size.heads;
  return {static_cast<double>(size.tokens) * static_cast<double>(inside + states)};
}

Bytes scan_traffic(const ScanSize& size) {
  if (size.recurrence == Recurrence::gated_delta) {
    const std::int64_t bytes_per_head = bytes_of(size.dtype) * 6 * (size.state + size.head_dim) + 4 * size.chunk +
                                        16 * size.state * size.head_dim / size.chunk;
    return {size.tokens * size.heads * bytes_per_head};
  }
  const std::int64_t inner = size.head_dim * size.heads;
  const std::int64_t tensors = bytes_of(size.dtype) * (3 * inner + 4 * size.state * size.groups);
  const std::int64_t inner_products = 8 * size.chunk * size.groups;
  return {size.tokens * (tensors + inner_products) + 16 * size.tokens * size.state * inner / size.chunk};
}

Duration scan_time(const Accelerator& accelerator, const ScanSize& size) {
  check(size.tokens > 0 && size.heads > 0 && size.chunk > 0, "a scan has tokens, heads and chunks");
  const double rate = accelerator.dense_peak(size.dtype).value * accelerator.attention.loop_efficiency.value;
  const double bandwidth = accelerator.hbm_bandwidth.value.value * accelerator.memory_bound_efficiency.value;
  const double seconds =
      std::max(scan_flops(size).count / rate, static_cast<double>(scan_traffic(size).count) / bandwidth);
  return scan_kernels(size.recurrence) * accelerator.kernel_floor.value + op_time(seconds, "a state-space scan");
}

}  // namespace commfuse
