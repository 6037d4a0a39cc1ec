// SPDX-License-Identifier: Apache-2.0
// Waits by the clock that all multiprocessors share, and numbers in pinned memory that the host also accesses.
#pragma once

#include <cstdint>

#include "validate/cuda/module/device_code.cuh"

namespace commfuse::validate {

/// Reads a number in pinned memory that the host may write at the same time.
__device__ inline int read_of_host(const volatile int* at) {
#ifdef __CUDACC__
  return *at;
#else
  return __atomic_load_n(at, __ATOMIC_ACQUIRE);
#endif
}

/// Writes a number that the host may read at the same time.
__device__ inline void write_for_host(volatile int* at, int value) {
#ifdef __CUDACC__
  *at = value;
#else
  __atomic_store_n(at, value, __ATOMIC_RELEASE);
#endif
}

__device__ inline void wait_until(std::int64_t time) {
  while (device_time() < time) {
#ifdef __CUDACC__
    __nanosleep(20);
#else
    software_gpu::sleep_until(time);
#endif
  }
}

}  // namespace commfuse::validate
