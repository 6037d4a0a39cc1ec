// SPDX-License-Identifier: Apache-2.0
// What CUDA says went wrong, as exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace commfuse::validate {

/// Throws std::runtime_error with the call's name and what CUDA says, unless all is well. The next call is not blamed.
inline void require(cudaError_t status, const char* call) {
  if (status != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    throw std::runtime_error(std::string(call) + " failed: " + cudaGetErrorString(status));
  }
}

/// Of a call that is wrong as it stands, whatever the device.
inline void require(bool holds, const char* sentence) {
  if (!holds) {
    throw std::runtime_error(sentence);
  }
}

}  // namespace commfuse::validate
