// SPDX-License-Identifier: Apache-2.0
// Kernel launches and other code that depends on the device compiler: nvcc, or the compiler of the software GPU
// (tests/software_gpu), which compiles these sources for the host.
#pragma once

#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include <software_gpu.h>
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace commfuse::validate {

/// Parameters of <<<grid, block, shared_bytes, stream>>>.
struct LaunchShape {
  dim3 grid;
  dim3 block;
  cudaStream_t stream = nullptr;
  std::size_t shared_bytes = 0;
};

/// Launches a kernel; cudaGetLastError() reports whether the launch succeeded. `name` is the kernel's name in the
/// software GPU.
template <class... Parameters>
void launch([[maybe_unused]] const char* name, void (*kernel)(Parameters...), const LaunchShape& shape,
            const std::type_identity_t<Parameters>&... arguments) {
#ifdef __CUDACC__
  kernel<<<shape.grid, shape.block, shape.shared_bytes, shape.stream>>>(arguments...);
#else
  software_gpu::launch(reinterpret_cast<const void*>(kernel), name, {shape.grid, shape.block, shape.shared_bytes},
                       shape.stream, [=] { kernel(arguments...); });
#endif
}

/// Returns the block's dynamic shared memory, aligned to 16 bytes.
template <class Element>
__device__ inline Element* dynamic_shared() {
#ifdef __CUDACC__
  extern __shared__ __align__(16) unsigned char dynamic_shared_bytes[];
  return reinterpret_cast<Element*>(dynamic_shared_bytes);
#else
  return static_cast<Element*>(software_gpu::dynamic_shared_memory());
#endif
}

/// Returns nanoseconds of the clock that all multiprocessors share. Its resolution differs between GPUs, so
/// measurements must report it.
__device__ inline std::int64_t device_time() {
#ifdef __CUDACC__
  std::int64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
#else
  return software_gpu::device_time();
#endif
}

}  // namespace commfuse::validate
