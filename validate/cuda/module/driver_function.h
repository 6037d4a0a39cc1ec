// SPDX-License-Identifier: Apache-2.0
// Functions of the CUDA driver API, which is not linked.
#pragma once

#include <cuda_runtime_api.h>

#include "validate/cuda/module/failures.h"

namespace commfuse::validate {

/// Returns the driver's function of this name in the form of a CUDA version, such as 11070; nullptr if the driver lacks
/// it. A runtime older than 12.5 ignores `version` and uses its own version.
template <class Function>
Function driver_function(const char* name, [[maybe_unused]] unsigned version) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  require(cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableDefault, &result), name);
#else
  require(cudaGetDriverEntryPoint(name, &address, cudaEnableDefault, &result), name);
#endif
  return result == cudaDriverEntryPointSuccess
             ? reinterpret_cast<Function>(address)  // NOLINT(*-reinterpret-cast): the purpose of the call
             : nullptr;
}

}  // namespace commfuse::validate
