// SPDX-License-Identifier: Apache-2.0
// bfloat16 for device code, with the bits of NVIDIA's conversions: exact to fp32, and from fp32 to the nearest value,
// ties to even; NaN becomes NVIDIA's canonical NaN.
#pragma once

#include <bit>
#include <cstdint>

struct __nv_bfloat16 {
  unsigned short bits;
};

inline float __bfloat162float(__nv_bfloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U);
}

inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) {
    return {0x7fff};
  }
  const std::uint32_t half = 0x7fffU + ((bits >> 16U) & 1U);
  return {static_cast<unsigned short>((bits + half) >> 16U)};
}

inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return {bits}; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
