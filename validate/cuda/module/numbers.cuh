// SPDX-License-Identifier: Apache-2.0
// Elements in device memory: read to fp32, rounded once when stored, as rounding.h has it.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "validate/cuda/module/device_code.cuh"
#include "validate/cuda/module/views.h"

namespace commfuse::validate {

struct Divided {
  std::int64_t quotient = 0;
  std::int64_t rest = 0;
};

/// Of numbers that are not negative; `by` is at least 1. Where both have 32 bits they are divided so: a GPU divides
/// 64-bit numbers by a subroutine, which would take longer than the element that is looked for.
__device__ inline Divided divided(std::int64_t number, std::int64_t by) {
  if (((number | by) >> 32) == 0) {
    const auto narrow = static_cast<std::uint32_t>(number);
    const std::uint32_t quotient = narrow / static_cast<std::uint32_t>(by);
    return {quotient, narrow - quotient * static_cast<std::uint32_t>(by)};
  }
  return {number / by, number % by};
}

/// The nearest value of `dtype`, ties to even; infinity beyond its range, NaN stays NaN.
__device__ inline float rounded(DType dtype, float value) {
  switch (dtype) {
    case DType::bf16: return __bfloat162float(__float2bfloat16_rn(value));
    case DType::fp16: return __half2float(__float2half_rn(value));
    default: return value;
  }
}

__device__ inline float load(const View& from, std::int64_t row, std::int64_t column) {
  const std::int64_t at = row * from.stride + column;
  switch (from.dtype) {
    case DType::bf16: return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(from.at)[at]);
    case DType::fp16: return __half2float(reinterpret_cast<const __half*>(from.at)[at]);
    default: return reinterpret_cast<const float*>(from.at)[at];
  }
}

__device__ inline void store(const View& to, std::int64_t row, std::int64_t column, float value) {
  const std::int64_t at = row * to.stride + column;
  switch (to.dtype) {
    case DType::bf16: reinterpret_cast<__nv_bfloat16*>(to.at)[at] = __float2bfloat16_rn(value); return;
    case DType::fp16: reinterpret_cast<__half*>(to.at)[at] = __float2half_rn(value); return;
    default: reinterpret_cast<float*>(to.at)[at] = value;
  }
}

/// Neighbours in a row: what one thread handles in one go.
struct Eight {
  static constexpr int size = 8;
  float value[size];
};

__device__ inline Eight load_aligned(const View& from, std::int64_t row, std::int64_t column) {
  Eight out;
  const std::int64_t at = row * from.stride + column;
  if (from.dtype == DType::fp32) {
    const float4* vectors = reinterpret_cast<const float4*>(reinterpret_cast<const float*>(from.at) + at);
    const float4 low = vectors[0];
    const float4 high = vectors[1];
    const float all[Eight::size] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < Eight::size; ++i) {
      out.value[i] = all[i];
    }
    return out;
  }
  const uint4 vector = *reinterpret_cast<const uint4*>(reinterpret_cast<const std::uint16_t*>(from.at) + at);
  const unsigned words[] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
  for (int i = 0; i < Eight::size; ++i) {
    const auto bits = static_cast<unsigned short>(words[i / 2] >> (16 * (i % 2)));
    out.value[i] =
        from.dtype == DType::bf16 ? __bfloat162float(__ushort_as_bfloat16(bits)) : __half2float(__ushort_as_half(bits));
  }
  return out;
}

__device__ inline void store_aligned(const View& to, std::int64_t row, std::int64_t column, const Eight& from) {
  const std::int64_t at = row * to.stride + column;
  if (to.dtype == DType::fp32) {
    float4* vectors = reinterpret_cast<float4*>(reinterpret_cast<float*>(to.at) + at);
    vectors[0] = {from.value[0], from.value[1], from.value[2], from.value[3]};
    vectors[1] = {from.value[4], from.value[5], from.value[6], from.value[7]};
    return;
  }
  unsigned words[Eight::size / 2] = {};
#pragma unroll
  for (int i = 0; i < Eight::size; ++i) {
    const unsigned short bits = to.dtype == DType::bf16 ? __bfloat16_as_ushort(__float2bfloat16_rn(from.value[i]))
                                                        : __half_as_ushort(__float2half_rn(from.value[i]));
    words[i / 2] |= static_cast<unsigned>(bits) << (16 * (i % 2));
  }
  *reinterpret_cast<uint4*>(reinterpret_cast<std::uint16_t*>(to.at) + at) = {words[0], words[1], words[2], words[3]};
}

/// `count` elements from `column` on; the rest is zero.
__device__ inline Eight load_eight(const View& from, std::int64_t row, std::int64_t column, int count, bool aligned) {
  if (aligned && count == Eight::size) {
    return load_aligned(from, row, column);
  }
  Eight out{};
#pragma unroll
  for (int i = 0; i < Eight::size; ++i) {
    out.value[i] = i < count ? load(from, row, column + i) : 0.0F;
  }
  return out;
}

__device__ inline void store_eight(const View& to, std::int64_t row, std::int64_t column, const Eight& from, int count,
                                   bool aligned) {
  if (aligned && count == Eight::size) {
    store_aligned(to, row, column, from);
    return;
  }
#pragma unroll
  for (int i = 0; i < Eight::size; ++i) {
    if (i < count) {
      store(to, row, column + i, from.value[i]);
    }
  }
}

}  // namespace commfuse::validate
