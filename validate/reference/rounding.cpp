// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/rounding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "model/check.h"

namespace commfuse::validate {

namespace {

/// bf16 is the upper half of an fp32: add just under half of what is cut off, one more when the part that is kept is
/// odd.
float to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t odd = (bits >> 16U) & 1U;
  return std::bit_cast<float>((bits + 0x7fffU + odd) & 0xffff0000U);
}

/// fp16 has 11 significant bits, subnormals in steps of 2^-24, and ends at 65504.
float to_fp16(float value) {
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| in [2^(exponent-1), 2^exponent)
  const int step = std::max(exponent - 11, -24);
  // Scaling by a power of two is exact here, and nearbyint rounds ties to even.
  const float rounded = std::ldexp(std::nearbyint(std::ldexp(value, -step)), step);
  return std::abs(rounded) > 65504.0F ? std::copysign(HUGE_VALF, value) : rounded;
}

}  // namespace

bool can_store(DType dtype) { return dtype != DType::fp8; }

float stored(DType dtype, float value) {
  check(can_store(dtype), "the reference stores fp32, fp16 and bf16");
  if (dtype == DType::fp32 || !std::isfinite(value)) {
    return value;
  }
  return dtype == DType::bf16 ? to_bf16(value) : to_fp16(value);
}

Roundoff roundoff_of(DType dtype) {
  switch (dtype) {
    case DType::bf16: return {0x1p-8, 0x1p-134};
    case DType::fp16: return {0x1p-11, 0x1p-25};
    case DType::fp32: return {0x1p-24, 0x1p-150};
    case DType::fp8: break;
  }
  check(false, "the reference stores fp32, fp16 and bf16");
  return {};
}

double largest_exact_integer(DType dtype) { return 1.0 / roundoff_of(dtype).relative; }

}  // namespace commfuse::validate
