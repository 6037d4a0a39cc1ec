// SPDX-License-Identifier: Apache-2.0
// Waiting by the clock that all multiprocessors share.
#pragma once

#include <cstdint>

#include "validate/cuda/module/device_code.cuh"

namespace commfuse::validate {

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
