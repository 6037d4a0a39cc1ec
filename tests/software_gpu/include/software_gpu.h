// SPDX-License-Identifier: Apache-2.0
// Device code on a processor: the keywords of CUDA C++ and the functions that kernels call. Threads of a block are
// fibers of one host thread, so a variable in shared memory is thread_local on the host. While a kernel sleeps
// (__nanosleep), other blocks may begin, so a kernel that sleeps must not have shared variables.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __grid_constant__

struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};

extern constinit thread_local uint3 threadIdx;
extern constinit thread_local uint3 blockIdx;
extern constinit thread_local dim3 blockDim;
extern constinit thread_local dim3 gridDim;

/// Waits for all threads of the block that have not returned.
void __syncthreads();
void __nanosleep(unsigned nanoseconds);

namespace software_gpu {

/// Returns the time of the clock that all streams share, in nanoseconds.
std::int64_t device_time();
/// Waits until this clock shows `time`; other threads run meanwhile.
void sleep_until(std::int64_t time);
/// Returns the dynamic shared memory of the running block, aligned to 16 bytes.
void* dynamic_shared_memory();
/// Exchanges bits with the lane whose number differs in the bits of `mask`; all lanes of the warp must call it.
std::uint64_t exchange_in_warp(std::uint64_t bits, int mask);

struct KernelShape {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
};
/// Queues a kernel: `body` runs once for every thread. `kernel` is its address for cudaFuncSetAttribute().
/// If this fails, cudaGetLastError() returns the error.
void launch(const void* kernel, const char* name, const KernelShape& shape, cudaStream_t stream,
            std::function<void()> body);

}  // namespace software_gpu

/// Accepts a function, as NVIDIA's overload does.
template <class Function>
cudaError_t cudaFuncSetAttribute(Function* function, cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(function), attribute, value);
}

inline void __threadfence_system() {
#if defined(__SANITIZE_THREAD__)  // ThreadSanitizer does not follow fences
  static int nothing = 0;
  __atomic_fetch_add(&nothing, 1, __ATOMIC_SEQ_CST);
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}
inline unsigned long long atomicAdd(unsigned long long* at, unsigned long long more) {
  return __atomic_fetch_add(at, more, __ATOMIC_RELAXED);
}

inline float __shfl_xor_sync(unsigned /*mask*/, float value, int lane_mask) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = software_gpu::exchange_in_warp(bits, lane_mask);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Returns the upper half of a product.
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>((std::uint64_t{a} * b) >> 32U); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline float __expf(float x) { return std::exp(x); }

// Kernels call these without a namespace, as nvcc declares them.
using std::erfc;
using std::exp;
using std::min;
using std::remainder;
using std::sqrt;
