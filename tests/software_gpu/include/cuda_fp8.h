// SPDX-License-Identifier: Apache-2.0
// fp8 for device code, with the bits of NVIDIA's conversions, only for E4M3 and with saturation: exact to fp32 (by way
// of fp16), and from fp32 to the nearest value, ties to even; NaN becomes NVIDIA's canonical NaN.
#pragma once

#include <cuda_fp16.h>

#include <bit>
#include <cstdint>

using __nv_fp8_storage_t = unsigned char;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float value, __nv_saturation_t /*saturate*/,
                                                __nv_fp8_interpretation_t /*format*/) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint32_t>((bits >> 24U) & 0x80U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {
    return 0x7f;
  }
  if (magnitude >= 0x43e00000U) {  // 448
    return static_cast<__nv_fp8_storage_t>(sign | 0x7eU);
  }
  if (magnitude < 0x3c800000U) {  // below 2^-6: subnormals are multiples of 2^-9, the spacing of floats at 2^14
    const float stepped = std::bit_cast<float>(magnitude) + 0x1p14F;
    return static_cast<__nv_fp8_storage_t>(sign | (std::bit_cast<std::uint32_t>(stepped) & 0xfU));
  }
  const std::uint32_t half = 0x7ffffU + ((magnitude >> 20U) & 1U);
  return static_cast<__nv_fp8_storage_t>(sign | ((magnitude + half - (120U << 23U)) >> 20U));
}

inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t bits, __nv_fp8_interpretation_t /*format*/) {
  const auto sign = static_cast<unsigned short>((bits & 0x80U) << 8U);
  const unsigned magnitude = bits & 0x7fU;
  if (magnitude == 0x7fU) {
    return {0x7fff};
  }
  if (magnitude >= 0x08U) {
    return {static_cast<unsigned short>(sign | ((magnitude << 7U) + (8U << 10U)))};
  }
  constexpr unsigned short subnormals[] = {0, 0x1800, 0x1c00, 0x1e00, 0x2000, 0x2100, 0x2200, 0x2300};
  return {static_cast<unsigned short>(sign | subnormals[magnitude])};
}
