// SPDX-License-Identifier: Apache-2.0
// CUDA's errors as exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace commfuse::validate {

/// Throws std::runtime_error with the call's name and CUDA's error if the call failed. Clears the error, so that the
/// next call does not report it.
inline void require(cudaError_t status, const char* call) {
  if (status != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    throw std::runtime_error(std::string(call) + " failed: " + cudaGetErrorString(status));
  }
}

/// Throws std::runtime_error with `sentence` unless `holds` is true; for calls that would fail on any device.
inline void require(bool holds, const char* sentence) {
  if (!holds) {
    throw std::runtime_error(sentence);
  }
}

}  // namespace commfuse::validate
