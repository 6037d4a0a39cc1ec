// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/rounding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "model/check.h"

namespace commfuse::validate {

namespace {

/// bf16 is the upper half of an fp32: add just under half of the range that is cut off, and one more if the remaining
/// part is odd.
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

/// fp8 (E4M3) has 4 significant bits, subnormals in steps of 2^-9, and ends at 448.
float to_fp8(float value) {
  if (std::abs(value) >= 448.0F) {
    return std::copysign(448.0F, value);
  }
  int exponent = 0;
  std::frexp(value, &exponent);
  const int step = std::max(exponent - 4, -9);
  return std::ldexp(std::nearbyint(std::ldexp(value, -step)), step);
}

/// Requires `value` to be exact in fp8, or NaN; every NaN becomes NVIDIA's canonical one.
std::uint8_t fp8_bits(float value) {
  if (std::isnan(value)) {
    return 0x7f;
  }
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint8_t>((bits >> 24U) & 0x80U);
  const float magnitude = std::abs(value);
  if (magnitude < 0x1p-6F) {  // in steps of 2^-9
    return static_cast<std::uint8_t>(sign | static_cast<std::uint8_t>(magnitude * 0x1p9F));
  }
  const std::uint32_t rebiased = (bits & 0x7fffffffU) - (120U << 23U);
  return static_cast<std::uint8_t>(sign | (rebiased >> 20U));
}

float from_fp8_bits(std::uint8_t bits) {
  const std::uint32_t sign = (bits & 0x80U) << 24U;
  const std::uint32_t exponent = (bits >> 3U) & 0xfU;
  const std::uint32_t mantissa = bits & 0x7U;
  if (exponent == 0) {
    return std::copysign(static_cast<float>(mantissa) * 0x1p-9F, std::bit_cast<float>(sign));
  }
  if ((bits & 0x7fU) == 0x7fU) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  return std::bit_cast<float>(sign | ((exponent + 120U) << 23U) | (mantissa << 20U));
}

/// Returns the bits of the value rounded to bf16. Infinity and NaN keep their upper half; a NaN whose upper half would
/// be infinity becomes a quiet NaN.
std::uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t upper = bits >> 16U;
  const std::uint32_t nearest = (bits + 0x7fffU + (upper & 1U)) >> 16U;
  const std::uint32_t quiet = (bits & 0x7fffffffU) > 0x7f800000U && (upper & 0x7fU) == 0 ? 0x40U : 0U;
  const bool finite = (bits & 0x7f800000U) != 0x7f800000U;
  return static_cast<std::uint16_t>(finite ? nearest : upper | quiet);
}

float from_bf16_bits(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16U); }

/// Requires `value` to be exact in fp16, infinite, or NaN.
std::uint16_t fp16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
  if (std::isnan(value)) {
    const std::uint32_t payload = (bits >> 13U) & 0x3ffU;
    return static_cast<std::uint16_t>(sign | 0x7c00U | (payload == 0 ? 0x200U : payload));
  }
  const float magnitude = std::abs(value);
  if (magnitude == HUGE_VALF) {
    return static_cast<std::uint16_t>(sign | 0x7c00U);
  }
  if (magnitude < 0x1p-14F) {  // in steps of 2^-24
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(magnitude * 0x1p24F));
  }
  const std::uint32_t rebiased = (bits & 0x7fffffffU) - (112U << 23U);
  return static_cast<std::uint16_t>(sign | (rebiased >> 13U));
}

float from_fp16_bits(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1fU;
  const std::uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 0) {
    return std::copysign(static_cast<float>(mantissa) * 0x1p-24F, std::bit_cast<float>(sign));
  }
  const std::uint32_t rebiased = exponent == 0x1fU ? 0xffU : exponent + 112U;
  return std::bit_cast<float>(sign | (rebiased << 23U) | (mantissa << 13U));
}

/// Converts element by element: to(value) into bytes.
template <class Bits, class To>
void encode_each(std::span<const float> values, std::span<std::byte> bytes, To&& to) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Bits bits = to(values[i]);
    std::memcpy(&bytes[i * sizeof(Bits)], &bits, sizeof(Bits));
  }
}
template <class Bits, class From>
void decode_each(std::span<const std::byte> bytes, std::span<float> values, From&& from) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Bits bits{};
    std::memcpy(&bits, &bytes[i * sizeof(Bits)], sizeof(Bits));
    values[i] = from(bits);
  }
}

}  // namespace

bool can_store(DType dtype) { return dtype != DType::fp8; }

float stored(DType dtype, float value) {
  if (dtype == DType::fp8) {
    return std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : to_fp8(value);
  }
  if (dtype == DType::fp32) {
    return value;
  }
  if (!std::isfinite(value)) {  // the bits of a NaN are those that memory and messages keep
    return dtype == DType::bf16 ? from_bf16_bits(bf16_bits(value)) : from_fp16_bits(fp16_bits(value));
  }
  return dtype == DType::bf16 ? to_bf16(value) : to_fp16(value);
}

void encode(DType dtype, std::span<const float> values, std::span<std::byte> bytes) {
  check(bytes.size() == values.size() * static_cast<std::size_t>(bytes_of(dtype)),
        "there is an element for every value");
  switch (dtype) {
    case DType::fp32: std::memcpy(bytes.data(), values.data(), bytes.size()); return;
    case DType::bf16: encode_each<std::uint16_t>(values, bytes, bf16_bits); return;
    case DType::fp16:
      encode_each<std::uint16_t>(values, bytes, [](float x) { return fp16_bits(stored(DType::fp16, x)); });
      return;
    case DType::fp8:
      encode_each<std::uint8_t>(values, bytes, [](float x) { return fp8_bits(stored(DType::fp8, x)); });
      return;
  }
}

void decode(DType dtype, std::span<const std::byte> bytes, std::span<float> values) {
  check(bytes.size() == values.size() * static_cast<std::size_t>(bytes_of(dtype)),
        "there is a value for every element");
  switch (dtype) {
    case DType::fp32: std::memcpy(values.data(), bytes.data(), bytes.size()); return;
    case DType::bf16:
      decode_each<std::uint16_t>(bytes, values, [](std::uint16_t bits) { return from_bf16_bits(bits); });
      return;
    case DType::fp16: decode_each<std::uint16_t>(bytes, values, from_fp16_bits); return;
    case DType::fp8: decode_each<std::uint8_t>(bytes, values, from_fp8_bits); return;
  }
}

Roundoff roundoff_of(DType dtype) {
  switch (dtype) {
    case DType::bf16: return {0x1p-8, 0x1p-134};
    case DType::fp16: return {0x1p-11, 0x1p-25};
    case DType::fp32: return {0x1p-24, 0x1p-150};
    case DType::fp8: return {0x1p-4, 0x1p-10};
  }
  return {};
}

bool is_coarser(DType a, DType b) { return roundoff_of(a).relative > roundoff_of(b).relative; }

double largest_exact_integer(DType dtype) { return 1.0 / roundoff_of(dtype).relative; }

}  // namespace commfuse::validate
