// SPDX-License-Identifier: Apache-2.0
// Hashes of where an element stands, made and looked for where the data lies.
#include <algorithm>

#include "validate/cuda/module/failures.h"
#include "validate/cuda/module/kernels.h"
#include "validate/cuda/module/numbers.cuh"

namespace commfuse::validate {

namespace {

constexpr int threads = 256;
constexpr std::int64_t most_blocks = 4096;

struct Tags {
  View panel;
  std::int64_t rows = 0, columns = 0;
  std::uint64_t state = 0;
  std::int64_t first_row = 0, first_column = 0, tensor_columns = 0;
};

/// What the tensor's Random gives as its element number `at`, in the bits of the dtype, as data.cpp makes of it.
__device__ unsigned tag(const Tags& of, std::int64_t row, std::int64_t column) {
  const std::int64_t at = (of.first_row + row) * of.tensor_columns + of.first_column + column;
  std::uint64_t z = of.state + (static_cast<std::uint64_t>(at) + 1U) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  z ^= z >> 31U;
  switch (of.panel.dtype) {
    case DType::bf16: return static_cast<unsigned>(z >> 48U) & ~0x0080U;
    case DType::fp16: return static_cast<unsigned>(z >> 48U) & ~0x0400U;
    default: return static_cast<unsigned>(z >> 32U) & ~0x00800000U;
  }
}

__device__ unsigned bits_at(const View& from, std::int64_t at) {
  return from.dtype == DType::fp32 ? reinterpret_cast<const std::uint32_t*>(from.at)[at]
                                   : reinterpret_cast<const std::uint16_t*>(from.at)[at];
}

__global__ void __launch_bounds__(threads) fill_tags(const __grid_constant__ Tags of) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < of.rows * of.columns;
       i += step) {
    const std::int64_t row = i / of.columns;
    const std::int64_t at = row * of.panel.stride + i % of.columns;
    const unsigned bits = tag(of, row, i % of.columns);
    if (of.panel.dtype == DType::fp32) {
      reinterpret_cast<std::uint32_t*>(of.panel.at)[at] = bits;
    } else {
      reinterpret_cast<std::uint16_t*>(of.panel.at)[at] = static_cast<std::uint16_t>(bits);
    }
  }
}

__global__ void __launch_bounds__(threads)
    count_wrong_tags(const __grid_constant__ Tags of, unsigned long long* count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  unsigned long long wrong = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < of.rows * of.columns;
       i += step) {
    const std::int64_t row = i / of.columns;
    wrong += bits_at(of.panel, row * of.panel.stride + i % of.columns) != tag(of, row, i % of.columns) ? 1U : 0U;
  }
  if (wrong != 0) {
    atomicAdd(count, wrong);
  }
}

Tags tags_of(const TagCall& call) {
  return {.panel = view_of(call.panel),
          .rows = call.panel.rows,
          .columns = call.panel.columns,
          .state = call.state,
          .first_row = call.row,
          .first_column = call.column,
          .tensor_columns = call.columns};
}

unsigned blocks_for(const TagCall& call) {
  const std::int64_t all = call.panel.rows * call.panel.columns;
  return static_cast<unsigned>(std::clamp<std::int64_t>(groups_of(all, threads), 1, most_blocks));
}

}  // namespace

void launch_tags(cudaStream_t stream, const TagCall& call) {
  launch("fill_tags", fill_tags, {blocks_for(call), threads, stream}, tags_of(call));
  require(cudaGetLastError(), "a tag kernel");
}

void launch_count_of_wrong_tags(cudaStream_t stream, const TagCall& call, unsigned long long* count) {
  launch("count_wrong_tags", count_wrong_tags, {blocks_for(call), threads, stream}, tags_of(call), count);
  require(cudaGetLastError(), "a count of tags");
}

}  // namespace commfuse::validate
