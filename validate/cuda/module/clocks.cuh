// SPDX-License-Identifier: Apache-2.0
// The clock that all multiprocessors share.
#pragma once

#include <cstdint>

namespace commfuse::validate {

/// Nanoseconds; its resolution differs from GPU to GPU, which a measurement has to tell.
__device__ inline std::int64_t device_time() {
  std::int64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

__device__ inline void wait_until(std::int64_t time) {
  while (device_time() < time) {
    __nanosleep(20);
  }
}

}  // namespace commfuse::validate
