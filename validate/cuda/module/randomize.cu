// SPDX-License-Identifier: Apache-2.0
// Random-looking values for timing, because the power of a GEMM, and therefore its speed, depends on its bits.
#include "validate/cuda/module/failures.h"
#include "validate/cuda/module/kernels.h"
#include "validate/cuda/module/numbers.cuh"

namespace commfuse::validate {

namespace {

constexpr int threads = 256;
constexpr std::int64_t max_blocks = 4096;

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014), as in Random on the host.
__device__ std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

template <class Out>
__global__ void __launch_bounds__(threads) randomize(View to, Tiles tiles, bool aligned, std::uint64_t seed) {
  const std::uint64_t start = mixed(seed);
  tiles.for_each(blocks_of_grid(), threads, [&](std::int64_t row, std::int64_t column, int count) {
    const auto first = static_cast<std::uint64_t>(row * tiles.columns + column);
    Eight out{};
#pragma unroll
    for (unsigned i = 0; i < Eight::size; ++i) {
      const std::uint64_t bits = mixed(start + (first + i) * 0x9e3779b97f4a7c15U);
      out.value[i] = static_cast<float>(bits >> 40U) * 0x1p-23F - 1.0F;
    }
    store_eight<Out>(to, row, column, out, count, aligned);
  });
}

using Kernel = void (*)(View, Tiles, bool, std::uint64_t);

}  // namespace

void launch_randomize(cudaStream_t stream, const Panel& panel, std::uint64_t seed) {
  if (panel.rows <= 0 || panel.columns <= 0) {
    return;
  }
  const auto kernel = with_known(panel.dtype, [](auto out) -> Kernel { return randomize<decltype(out)>; });
  const Tiles tiles = tiles_of(panel.rows, panel.columns, threads);
  launch("randomize", kernel, {grid_of(tiles, threads, max_blocks), threads, stream}, view_of(panel), tiles,
         is_aligned(panel), seed);
  require(cudaGetLastError(), "a kernel that fills memory");
}

}  // namespace commfuse::validate
