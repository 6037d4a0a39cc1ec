// SPDX-License-Identifier: Apache-2.0
// The interpreter's GEMM, bit for bit. A thread sums its elements over k in ascending order; products and sums are
// rounded separately, by intrinsics that no compiler flag affects.
#include "validate/cuda/module/failures.h"
#include "validate/cuda/module/kernels.h"
#include "validate/cuda/module/numbers.cuh"

namespace commfuse::validate {

namespace {

constexpr int tile = 64;        // rows and columns of the output for one block of threads
constexpr int tile_depth = 16;  // elements along k that are in shared memory at a time
constexpr int width = 16;       // threads along each side
constexpr int per_thread = tile / width;

struct ExactProduct {
  View a, b, out;
  std::int64_t rows = 0, columns = 0, depth = 0;
  bool transpose_a = false, transpose_b = false, accumulate = false;
};

/// Loads the tile of an operand that starts at row `first` (for b, at column `first`) and at depth `k`; zero outside.
template <class Get>
__device__ void fill_tile(float (&to)[tile_depth][tile + 1], std::int64_t first, std::int64_t end, std::int64_t k,
                          std::int64_t all_k, bool along_k, const Get& get) {
  for (int i = static_cast<int>(threadIdx.x); i < tile * tile_depth; i += width * width) {
    // Neighbouring threads read neighbouring elements.
    const int down = along_k ? i % tile_depth : i / tile;
    const int across = along_k ? i / tile_depth : i % tile;
    const bool inside = first + across < end && k + down < all_k;
    to[down][across] = inside ? get(first + across, k + down) : 0.0F;
  }
}

/// Adds the products of one tile to the sums. Elements beyond the depth are skipped, not added as zeros.
__device__ void add_tile(float (&sums)[per_thread][per_thread], const float (&a)[tile_depth][tile + 1],
                         const float (&b)[tile_depth][tile + 1], int count) {
  const int x = static_cast<int>(threadIdx.x) % width;
  const int y = static_cast<int>(threadIdx.x) / width;
  for (int k = 0; k < count; ++k) {
    float left[per_thread];
    float right[per_thread];
    for (int i = 0; i < per_thread; ++i) {
      left[i] = a[k][y + i * width];
      right[i] = b[k][x + i * width];
    }
    for (int i = 0; i < per_thread; ++i) {
      for (int j = 0; j < per_thread; ++j) {
        sums[i][j] = __fadd_rn(sums[i][j], __fmul_rn(left[i], right[j]));
      }
    }
  }
}

/// In, Out: dtypes of both factors, and of the output.
template <class In, class Out>
__global__ void __launch_bounds__(width* width) exact_product(const __grid_constant__ ExactProduct args) {
  __shared__ float a[tile_depth][tile + 1];
  __shared__ float b[tile_depth][tile + 1];
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * tile;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * tile;
  float sums[per_thread][per_thread] = {};
  for (std::int64_t k = 0; k < args.depth; k += tile_depth) {
    fill_tile(a, row, args.rows, k, args.depth, !args.transpose_a, [&](std::int64_t i, std::int64_t at) {
      return args.transpose_a ? load<In>(args.a, at, i) : load<In>(args.a, i, at);
    });
    fill_tile(b, column, args.columns, k, args.depth, args.transpose_b, [&](std::int64_t j, std::int64_t at) {
      return args.transpose_b ? load<In>(args.b, j, at) : load<In>(args.b, at, j);
    });
    __syncthreads();
    add_tile(sums, a, b, static_cast<int>(args.depth - k < tile_depth ? args.depth - k : tile_depth));
    __syncthreads();
  }
  for (int i = 0; i < per_thread; ++i) {
    for (int j = 0; j < per_thread; ++j) {
      const std::int64_t r = row + static_cast<int>(threadIdx.x) / width + i * width;
      const std::int64_t c = column + static_cast<int>(threadIdx.x) % width + j * width;
      if (r < args.rows && c < args.columns) {
        store<Out>(args.out, r, c, args.accumulate ? __fadd_rn(load<Out>(args.out, r, c), sums[i][j]) : sums[i][j]);
      }
    }
  }
}

using Kernel = void (*)(ExactProduct);

Kernel kernel_of(const ProductCall& call) {
  if (call.a.dtype != call.b.dtype) {
    return exact_product<AnyDtype, AnyDtype>;
  }
  return with_known(call.a.dtype, [&](auto in) {
    return with_known(call.out.dtype, [](auto out) -> Kernel { return exact_product<decltype(in), decltype(out)>; });
  });
}

}  // namespace

void launch_exact_product(cudaStream_t stream, const ProductCall& call) {
  const ExactProduct args{.a = view_of(call.a),
                          .b = view_of(call.b),
                          .out = view_of(call.out),
                          .rows = call.out.rows,
                          .columns = call.out.columns,
                          .depth = call.transpose_a ? call.a.rows : call.a.columns,
                          .transpose_a = call.transpose_a,
                          .transpose_b = call.transpose_b,
                          .accumulate = call.accumulate};
  const std::int64_t blocks_down = groups_of(args.rows, tile);
  const std::int64_t blocks_across = groups_of(args.columns, tile);
  require(blocks_down <= max_blocks_along_y && blocks_across <= max_blocks_along_x,
          "an exact GEMM has at most 4 million rows, and 2^37 columns");
  if (args.rows == 0 || args.columns == 0) {
    return;
  }
  const dim3 grid(static_cast<unsigned>(blocks_across), static_cast<unsigned>(blocks_down));
  launch("exact_product", kernel_of(call), {grid, width * width, stream}, args);
  require(cudaGetLastError(), "an exact GEMM");
}

}  // namespace commfuse::validate
