// SPDX-License-Identifier: Apache-2.0
// Waiting by the clock that all multiprocessors share.
#pragma once

#include <cstdint>

#include "validate/cuda/module/device_code.cuh"

namespace commfuse::validate {

__device__ inline void wait_until(std::int64_t time) {
  while (device_time() < time) {
    __nanosleep(20);
  }
}

}  // namespace commfuse::validate
