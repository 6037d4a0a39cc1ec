// SPDX-License-Identifier: Apache-2.0
// The softmax between the two products of fast attention, in fp32.
#include "validate/cuda/module/failures.h"
#include "validate/cuda/module/kernels.h"
#include "validate/cuda/module/numbers.cuh"

namespace commfuse::validate {

namespace {

constexpr int threads = 256;
constexpr int warp = 32;

struct Largest {
  static constexpr float none = -INFINITY;
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  static constexpr float none = 0.0F;
  __device__ float operator()(float a, float b) const { return a + b; }
};

/// Of the values of all threads, in all threads; always in the same order.
template <class Combine>
__device__ float over_block(float value, const Combine& combine) {
  __shared__ float warps[threads / warp];
  for (int half = warp / 2; half > 0; half /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffU, value, half));
  }
  __syncthreads();  // whoever reads the room of the last call is done
  if (threadIdx.x % warp == 0) {
    warps[threadIdx.x / warp] = value;
  }
  __syncthreads();
  float all = Combine::none;
  for (const float one : warps) {
    all = combine(all, one);
  }
  return all;
}

__global__ void __launch_bounds__(threads) softmax(SoftmaxCall of) {
  const std::int64_t row = blockIdx.y * of.queries + blockIdx.x;
  const float* scores = of.scores + row * of.stride;
  const View weights{reinterpret_cast<Address>(of.weights), of.stride, of.dtype};
  const std::int64_t position = of.first_position + blockIdx.x;
  const std::int64_t seen = of.causal ? min(of.keys, position + 1) : of.keys;
  float largest = Largest::none;
  for (std::int64_t key = threadIdx.x; key < seen; key += threads) {
    largest = fmaxf(largest, scores[key]);
  }
  largest = over_block(largest, Largest{});
  float total = 0.0F;
  for (std::int64_t key = threadIdx.x; key < seen; key += threads) {
    total += __expf(scores[key] - largest);
  }
  total = over_block(total, Sum{});
  for (std::int64_t key = threadIdx.x; key < of.stride; key += threads) {
    store(weights, row, key, key < seen ? __expf(scores[key] - largest) / total : 0.0F);
  }
}

}  // namespace

void launch_softmax(cudaStream_t stream, const SoftmaxCall& call) {
  const dim3 grid(static_cast<unsigned>(call.queries), static_cast<unsigned>(call.heads));
  launch("softmax", softmax, {grid, threads, stream}, call);
  require(cudaGetLastError(), "a softmax kernel");
}

}  // namespace commfuse::validate
