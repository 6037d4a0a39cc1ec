// SPDX-License-Identifier: Apache-2.0
// Values that look random, for times: what a product draws of power, and so how fast it is, depends on its bits.
#include <algorithm>

#include "validate/cuda/module/failures.h"
#include "validate/cuda/module/kernels.h"
#include "validate/cuda/module/numbers.cuh"

namespace commfuse::validate {

namespace {

constexpr int threads = 256;
constexpr std::int64_t most_blocks = 4096;

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014), as Random has it on the host.
__device__ std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

__global__ void randomize(View to, std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * columns;
       i += step) {
    const std::uint64_t bits = mixed(mixed(seed) + static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15U);
    const Divided place = divided(i, columns);
    store(to, place.quotient, place.rest, static_cast<float>(bits >> 40U) * 0x1p-23F - 1.0F);
  }
}

}  // namespace

void launch_randomize(cudaStream_t stream, const Panel& panel, std::uint64_t seed) {
  const std::int64_t blocks = std::min((panel.rows * panel.columns + threads - 1) / threads, most_blocks);
  if (blocks > 0) {
    launch("randomize", randomize, {static_cast<unsigned>(blocks), threads, stream}, view_of(panel), panel.rows,
           panel.columns, seed);
    require(cudaGetLastError(), "a kernel that fills memory");
  }
}

}  // namespace commfuse::validate
