// SPDX-License-Identifier: Apache-2.0
// Elements in device memory, which are converted to fp32 when read and rounded once when stored, as in rounding.h. A
// kernel knows their dtypes at compile time (Known), except for rare mixtures (AnyDtype).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "validate/cuda/module/device_code.cuh"
#include "validate/cuda/module/failures.h"
#include "validate/cuda/module/kernels.h"
#include "validate/cuda/module/views.h"

namespace commfuse::validate {

/// A dtype that is known at compile time, so that loads and stores have no branch for it.
template <DType dtype>
struct Known {
  static constexpr bool is_known = true;
  static constexpr DType value = dtype;
  __device__ static constexpr DType of(DType /*dtype*/) { return dtype; }
};
/// A dtype that is known at run time, from a view.
struct AnyDtype {
  static constexpr bool is_known = false;
  __device__ static DType of(DType dtype) { return dtype; }
};

/// Calls `use` with the Known of a dtype in which tensors are stored (not fp8), and returns its result.
template <class Use>
auto with_known(DType dtype, const Use& use) {
  switch (dtype) {
    case DType::bf16: return use(Known<DType::bf16>{});
    case DType::fp16: return use(Known<DType::fp16>{});
    default: return use(Known<DType::fp32>{});
  }
}

/// Calls `use` with the Known of a dtype on wires, and returns its result.
template <class Use>
auto with_known_sent(DType dtype, const Use& use) {
  return dtype == DType::fp8 ? use(Known<DType::fp8>{}) : with_known(dtype, use);
}

/// fp8 is E4M3: the nearest value, ties to even, and +-448 beyond its range; NaN stays NaN.
__device__ inline std::uint8_t fp8_of(float value) { return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3); }
__device__ inline float from_fp8(std::uint8_t bits) {
  return __half2float(__ushort_as_half(__nv_cvt_fp8_to_halfraw(bits, __NV_E4M3).x));
}

/// Divides by a number that the host knows, with a multiplication and a shift; a division would be a subroutine on a
/// GPU. `by` is at least 1; `by` and the dividend are at most 2^31 - 1 (Granlund and Montgomery 1994).
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(std::int64_t by) : by_(static_cast<std::uint32_t>(by)) {
    while ((std::uint64_t{1} << shift_) < by_) {
      ++shift_;
    }
    multiplier_ = static_cast<std::uint32_t>((((std::uint64_t{1} << shift_) - by_) << 32U) / by_ + 1);
  }
  __device__ std::uint32_t quotient(std::uint32_t number) const {
    return (__umulhi(number, multiplier_) + number) >> shift_;
  }
  [[nodiscard]] __device__ std::uint32_t by() const { return by_; }

 private:
  std::uint32_t by_ = 1;
  std::uint32_t multiplier_ = 1;
  std::uint32_t shift_ = 0;
};

/// Returns the nearest value of `dtype`, ties to even. Beyond its range: infinity, or the largest value of fp8. NaN
/// stays NaN.
__device__ inline float rounded(DType dtype, float value) {
  switch (dtype) {
    case DType::bf16: return __bfloat162float(__float2bfloat16_rn(value));
    case DType::fp16: return __half2float(__float2half_rn(value));
    case DType::fp8: return from_fp8(fp8_of(value));
    default: return value;
  }
}

template <class Dtype = AnyDtype>
__device__ inline float load(const View& from, std::int64_t row, std::int64_t column) {
  const std::int64_t at = row * from.stride + column;
  switch (Dtype::of(from.dtype)) {
    case DType::bf16: return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(from.at)[at]);
    case DType::fp16: return __half2float(reinterpret_cast<const __half*>(from.at)[at]);
    case DType::fp8: return from_fp8(reinterpret_cast<const std::uint8_t*>(from.at)[at]);
    default: return reinterpret_cast<const float*>(from.at)[at];
  }
}

template <class Dtype = AnyDtype>
__device__ inline void store(const View& to, std::int64_t row, std::int64_t column, float value) {
  const std::int64_t at = row * to.stride + column;
  switch (Dtype::of(to.dtype)) {
    case DType::bf16: reinterpret_cast<__nv_bfloat16*>(to.at)[at] = __float2bfloat16_rn(value); return;
    case DType::fp16: reinterpret_cast<__half*>(to.at)[at] = __float2half_rn(value); return;
    case DType::fp8: reinterpret_cast<std::uint8_t*>(to.at)[at] = fp8_of(value); return;
    default: reinterpret_cast<float*>(to.at)[at] = value;
  }
}

/// Eight neighbouring elements of a row, which one thread handles together, by accesses of 16 bytes (8 in fp8) if rows
/// are aligned to that size.
struct Eight {
  static constexpr int size = 8;
  float value[size];
};

template <class Dtype = AnyDtype>
__device__ inline Eight load_aligned(const View& from, std::int64_t row, std::int64_t column) {
  Eight out;
  const std::int64_t at = row * from.stride + column;
  const DType dtype = Dtype::of(from.dtype);
  if (dtype == DType::fp32) {
    const float4* vectors = reinterpret_cast<const float4*>(reinterpret_cast<const float*>(from.at) + at);
    const float4 low = vectors[0];
    const float4 high = vectors[1];
    const float values[Eight::size] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < Eight::size; ++i) {
      out.value[i] = values[i];
    }
    return out;
  }
  if (dtype == DType::fp8) {
    const uint2 vector = *reinterpret_cast<const uint2*>(reinterpret_cast<const std::uint8_t*>(from.at) + at);
#pragma unroll
    for (int i = 0; i < Eight::size; ++i) {
      out.value[i] = from_fp8(static_cast<std::uint8_t>((i < 4 ? vector.x : vector.y) >> (8 * (i % 4))));
    }
    return out;
  }
  const uint4 vector = *reinterpret_cast<const uint4*>(reinterpret_cast<const std::uint16_t*>(from.at) + at);
  const unsigned words[] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
  for (int i = 0; i < Eight::size; ++i) {
    const auto bits = static_cast<unsigned short>(words[i / 2] >> (16 * (i % 2)));
    out.value[i] =
        dtype == DType::bf16 ? __bfloat162float(__ushort_as_bfloat16(bits)) : __half2float(__ushort_as_half(bits));
  }
  return out;
}

template <class Dtype = AnyDtype>
__device__ inline void store_aligned(const View& to, std::int64_t row, std::int64_t column, const Eight& from) {
  const std::int64_t at = row * to.stride + column;
  const DType dtype = Dtype::of(to.dtype);
  if (dtype == DType::fp32) {
    float4* vectors = reinterpret_cast<float4*>(reinterpret_cast<float*>(to.at) + at);
    vectors[0] = {from.value[0], from.value[1], from.value[2], from.value[3]};
    vectors[1] = {from.value[4], from.value[5], from.value[6], from.value[7]};
    return;
  }
  if (dtype == DType::fp8) {
    unsigned halves[2] = {};
#pragma unroll
    for (int i = 0; i < Eight::size; ++i) {
      halves[i / 4] |= static_cast<unsigned>(fp8_of(from.value[i])) << (8 * (i % 4));
    }
    *reinterpret_cast<uint2*>(reinterpret_cast<std::uint8_t*>(to.at) + at) = {halves[0], halves[1]};
    return;
  }
  unsigned words[Eight::size / 2] = {};
#pragma unroll
  for (int i = 0; i < Eight::size; ++i) {
    const unsigned short bits = dtype == DType::bf16 ? __bfloat16_as_ushort(__float2bfloat16_rn(from.value[i]))
                                                     : __half_as_ushort(__float2half_rn(from.value[i]));
    words[i / 2] |= static_cast<unsigned>(bits) << (16 * (i % 2));
  }
  *reinterpret_cast<uint4*>(reinterpret_cast<std::uint16_t*>(to.at) + at) = {words[0], words[1], words[2], words[3]};
}

/// Loads `count` elements starting at `column`; the other elements of the eight are zero.
template <class Dtype = AnyDtype>
__device__ inline Eight load_eight(const View& from, std::int64_t row, std::int64_t column, int count, bool aligned) {
  if (aligned && count == Eight::size) {
    return load_aligned<Dtype>(from, row, column);
  }
  Eight out{};
#pragma unroll
  for (int i = 0; i < Eight::size; ++i) {
    out.value[i] = i < count ? load<Dtype>(from, row, column + i) : 0.0F;
  }
  return out;
}

template <class Dtype = AnyDtype>
__device__ inline void store_eight(const View& to, std::int64_t row, std::int64_t column, const Eight& from, int count,
                                   bool aligned) {
  if (aligned && count == Eight::size) {
    store_aligned<Dtype>(to, row, column, from);
    return;
  }
#pragma unroll
  for (int i = 0; i < Eight::size; ++i) {
    if (i < count) {
      store<Dtype>(to, row, column + i, from.value[i]);
    }
  }
}

/// Divides a rectangle of eights among the threads of a grid. In a block, 2^bits neighbouring threads share a row and
/// handle neighbouring eights, and the rows of a block follow each other. Threads therefore compute their positions
/// without divisions.
struct Tiles {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;  ///< Elements; the last eight of a row may hold fewer.
  std::uint32_t across = 0;   ///< Eights of a row.
  std::uint32_t bits = 0;     ///< log2 of the number of threads of a block that share a row.

  /// The index of this block, and the number of blocks: x counts along the columns, y along the rows.
  struct Blocks {
    uint3 index;
    uint3 count;
  };

  /// Calls visit(row, column, count) for every eight of this thread.
  template <class Visit>
  __device__ void for_each(const Blocks& blocks, unsigned threads, const Visit& visit) const {
    const std::uint32_t x = threadIdx.x & ((1U << bits) - 1U);
    const std::uint32_t y = threadIdx.x >> bits;
    const std::uint32_t height = threads >> bits;
    for (std::uint32_t row = blocks.index.y * height + y; row < rows; row += blocks.count.y * height) {
      for (std::uint32_t eight = (blocks.index.x << bits) + x; eight < across; eight += blocks.count.x << bits) {
        const std::uint32_t column = eight * Eight::size;
        const std::uint32_t rest = columns - column;
        visit(std::int64_t{row}, std::int64_t{column}, rest < Eight::size ? static_cast<int>(rest) : Eight::size);
      }
    }
  }
};

/// Returns the grid of a kernel that works on one rectangle.
__device__ inline Tiles::Blocks blocks_of_grid() { return {{blockIdx.x, blockIdx.y, 0}, {gridDim.x, gridDim.y, 1}}; }
/// Returns a column of blocks, for kernels that work on several rectangles.
__device__ inline Tiles::Blocks blocks_along_rows() { return {{0, blockIdx.x, 0}, {1, gridDim.x, 1}}; }

/// Returns the tiles, on the host. Requires that `threads` is a power of two. Throws std::runtime_error for numbers of
/// rows and columns that do not fit into 32 bits.
inline Tiles tiles_of(std::int64_t rows, std::int64_t columns, std::uint32_t threads) {
  constexpr std::int64_t largest = (std::int64_t{1} << 31) - 1 - Eight::size;
  require(rows >= 0 && rows <= largest && columns >= 0 && columns <= largest,
          "a kernel works on fewer than 2^31 - 8 rows and columns; use smaller matrices");
  Tiles tiles{.rows = static_cast<std::uint32_t>(rows),
              .columns = static_cast<std::uint32_t>(columns),
              .across = static_cast<std::uint32_t>(groups_of(columns, Eight::size))};
  while ((1U << tiles.bits) < tiles.across && (2U << tiles.bits) <= threads) {
    ++tiles.bits;
  }
  return tiles;
}

/// Returns a grid with an eight for every thread, but with no more than `max_blocks` blocks.
inline dim3 grid_of(const Tiles& tiles, std::uint32_t threads, std::int64_t max_blocks) {
  const std::int64_t width = groups_of(tiles.across, std::int64_t{1} << tiles.bits);
  const std::int64_t height = groups_of(tiles.rows, threads >> tiles.bits);
  const std::int64_t x = width < max_blocks ? width : max_blocks;
  const std::int64_t max_height = max_blocks / x < max_blocks_along_y ? max_blocks / x : max_blocks_along_y;
  return {static_cast<unsigned>(x), static_cast<unsigned>(height < max_height ? height : max_height), 1};
}

}  // namespace commfuse::validate
