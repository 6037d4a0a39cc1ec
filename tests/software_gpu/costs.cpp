// SPDX-License-Identifier: Apache-2.0
// Stated time: each stream has a clock that only its own work advances. An event carries the clock of the stream that
// recorded it, and a stream that waits for the event continues at the later of the two clocks. The duration of a
// schedule then follows from its order and its stated costs, however fast the processor is.
#include <algorithm>
#include <cmath>

#include "tests/software_gpu/gpu.h"

namespace software_gpu {

bool time_is_stated() { return settings().kernel_ns > 0; }

std::int64_t& stated_now() {
  constexpr std::int64_t start = 1'000'000'000;  // the clock never shows zero, which means "none" elsewhere
  thread_local std::int64_t now = start;
  return now;
}

void wait_for_stated(std::int64_t time) { stated_now() = std::max(stated_now(), time); }

void end_stated(const Work& work, std::int64_t begin) {
  const bool has_cost = work.kind != WorkKind::other && work.name != gate_kernel;
  if (time_is_stated() && has_cost) {
    const auto gemm_ns = static_cast<std::int64_t>(std::llround(work.flops / settings().flops_per_second * 1e9));
    wait_for_stated(begin + std::max(settings().kernel_ns, gemm_ns));
  }
}

}  // namespace software_gpu
