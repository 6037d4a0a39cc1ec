// SPDX-License-Identifier: Apache-2.0
// fp16 for device code, with the bits of NVIDIA's conversions: exact to fp32, and from fp32 to the nearest value, ties
// to even; NaN becomes NVIDIA's canonical NaN.
#pragma once

#include <bit>
#include <cstdint>

struct __half {
  unsigned short bits;
};
struct __half_raw {
  unsigned short x;
};

inline float __half2float(__half value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (value.bits >> 10U) & 0x1fU;
  const std::uint32_t mantissa = value.bits & 0x3ffU;
  if (exponent == 0) {  // zero or subnormal: mantissa x 2^-24, exact in fp32
    const float small = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(small) | sign);
  }
  const std::uint32_t wide = exponent == 0x1fU ? 0xffU : exponent + 112U;
  return std::bit_cast<float>(sign | wide << 23U | mantissa << 13U);
}

inline __half __float2half_rn(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<unsigned short>((bits >> 16U) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {
    return {0x7fff};
  }
  if (magnitude >= 0x477ff000U) {  // 65520 and beyond round to infinity
    return {static_cast<unsigned short>(sign | 0x7c00U)};
  }
  if (magnitude < 0x38800000U) {  // below 2^-14: a multiple of 2^-24; adding 0.5 leaves that multiple in the mantissa
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return {static_cast<unsigned short>(sign | (std::bit_cast<std::uint32_t>(shifted) & 0x7ffU))};
  }
  const std::uint32_t half = 0xfffU + ((magnitude >> 13U) & 1U);
  return {static_cast<unsigned short>(sign | ((magnitude - 0x38000000U + half) >> 13U))};
}

inline __half __ushort_as_half(unsigned short bits) { return {bits}; }
inline unsigned short __half_as_ushort(__half value) { return value.bits; }
