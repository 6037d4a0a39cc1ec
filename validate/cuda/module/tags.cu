// SPDX-License-Identifier: Apache-2.0
// Hashes of element positions, computed and checked on the device.
#include <type_traits>

#include "validate/cuda/module/failures.h"
#include "validate/cuda/module/kernels.h"
#include "validate/cuda/module/numbers.cuh"

namespace commfuse::validate {

namespace {

constexpr int threads = 256;
constexpr std::int64_t max_blocks = 4096;

struct Tags {
  View panel;
  bool aligned = false;
  Tiles tiles;
  std::uint64_t state = 0;
  std::int64_t first_row = 0, first_column = 0, tensor_columns = 0;
};

/// Bits of neighbours in a row, each in the low end of its word.
struct EightBits {
  unsigned bits[Eight::size];
};

/// Returns eight elements of the tensor, starting at (row, column) of the panel, in the bits of the dtype, as data.cpp
/// computes them.
template <class Dtype>
__device__ EightBits tags_at(const Tags& tags, std::int64_t row, std::int64_t column) {
  const std::int64_t at = (tags.first_row + row) * tags.tensor_columns + tags.first_column + column;
  EightBits out;
#pragma unroll
  for (unsigned i = 0; i < Eight::size; ++i) {
    std::uint64_t z = tags.state + (static_cast<std::uint64_t>(at) + i + 1U) * 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    z ^= z >> 31U;
    switch (Dtype::value) {
      case DType::bf16: out.bits[i] = static_cast<unsigned>(z >> 48U) & ~0x0080U; break;
      case DType::fp16: out.bits[i] = static_cast<unsigned>(z >> 48U) & ~0x0400U; break;
      default: out.bits[i] = static_cast<unsigned>(z >> 32U) & ~0x00800000U;
    }
  }
  return out;
}

template <class Dtype>
constexpr bool is_wide = Dtype::value == DType::fp32;
template <class Dtype>
using Word = std::conditional_t<is_wide<Dtype>, std::uint32_t, std::uint16_t>;

/// Returns the address of an element.
template <class Dtype>
__device__ Word<Dtype>* element_at(const View& view, std::int64_t row, std::int64_t column) {
  return reinterpret_cast<Word<Dtype>*>(view.at) + row * view.stride + column;
}

template <class Dtype>
__device__ void put_bits(Word<Dtype>* to, const EightBits& from, int count, bool aligned) {
  const unsigned* const bits = from.bits;
  if (aligned && count == Eight::size) {
    auto* const vectors = reinterpret_cast<uint4*>(to);
    if constexpr (is_wide<Dtype>) {
      vectors[0] = {bits[0], bits[1], bits[2], bits[3]};
      vectors[1] = {bits[4], bits[5], bits[6], bits[7]};
    } else {
      vectors[0] = {bits[0] | bits[1] << 16U, bits[2] | bits[3] << 16U, bits[4] | bits[5] << 16U,
                    bits[6] | bits[7] << 16U};
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < Eight::size; ++i) {
    if (i < count) {
      to[i] = static_cast<Word<Dtype>>(bits[i]);
    }
  }
}

/// Counts wrong elements among the first `count`.
template <class Dtype>
__device__ unsigned wrong_bits(const Word<Dtype>* from, const EightBits& expected, int count, bool aligned) {
  unsigned wrong = 0;
  if (aligned && count == Eight::size) {
    const auto* const vectors = reinterpret_cast<const uint4*>(from);
    const uint4 low = vectors[0];
    const uint4 high = is_wide<Dtype> ? vectors[1] : low;
    const unsigned words[] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < Eight::size; ++i) {
      const unsigned bits = is_wide<Dtype> ? words[i] : words[i / 2] >> (16 * (i % 2)) & 0xffffU;
      wrong += bits != expected.bits[i] ? 1U : 0U;
    }
    return wrong;
  }
#pragma unroll
  for (int i = 0; i < Eight::size; ++i) {
    wrong += i < count && from[i] != expected.bits[i] ? 1U : 0U;
  }
  return wrong;
}

template <class Dtype>
__global__ void __launch_bounds__(threads) fill_tags(const __grid_constant__ Tags tags) {
  tags.tiles.for_each(blocks_of_grid(), threads, [&](std::int64_t row, std::int64_t column, int count) {
    put_bits<Dtype>(element_at<Dtype>(tags.panel, row, column), tags_at<Dtype>(tags, row, column), count, tags.aligned);
  });
}

template <class Dtype>
__global__ void __launch_bounds__(threads)
    count_wrong_tags(const __grid_constant__ Tags tags, unsigned long long* count) {
  unsigned long long wrong = 0;
  tags.tiles.for_each(blocks_of_grid(), threads, [&](std::int64_t row, std::int64_t column, int elements) {
    wrong += wrong_bits<Dtype>(element_at<Dtype>(tags.panel, row, column), tags_at<Dtype>(tags, row, column), elements,
                               tags.aligned);
  });
  if (wrong != 0) {
    atomicAdd(count, wrong);
  }
}

Tags tags_of(const TagCall& call) {
  return {.panel = view_of(call.panel),
          .aligned = is_aligned(call.panel),
          .tiles = tiles_of(call.panel.rows, call.panel.columns, threads),
          .state = call.state,
          .first_row = call.row,
          .first_column = call.column,
          .tensor_columns = call.columns};
}

bool is_empty(const TagCall& call) { return call.panel.rows <= 0 || call.panel.columns <= 0; }

using FillKernel = void (*)(Tags);
using CountKernel = void (*)(Tags, unsigned long long*);

}  // namespace

void launch_tags(cudaStream_t stream, const TagCall& call) {
  if (is_empty(call)) {
    return;
  }
  const Tags tags = tags_of(call);
  const auto kernel = with_known(call.panel.dtype, [](auto dtype) -> FillKernel { return fill_tags<decltype(dtype)>; });
  launch("fill_tags", kernel, {grid_of(tags.tiles, threads, max_blocks), threads, stream}, tags);
  require(cudaGetLastError(), "a tag kernel");
}

void launch_count_of_wrong_tags(cudaStream_t stream, const TagCall& call, unsigned long long* count) {
  if (is_empty(call)) {
    return;
  }
  const Tags tags = tags_of(call);
  const auto kernel =
      with_known(call.panel.dtype, [](auto dtype) -> CountKernel { return count_wrong_tags<decltype(dtype)>; });
  launch("count_wrong_tags", kernel, {grid_of(tags.tiles, threads, max_blocks), threads, stream}, tags, count);
  require(cudaGetLastError(), "a count of tags");
}

}  // namespace commfuse::validate
