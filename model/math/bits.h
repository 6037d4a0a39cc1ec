// SPDX-License-Identifier: Apache-2.0
// A double and its 64 bits, for the functions of this folder.
#pragma once

#include <bit>
#include <cfloat>
#include <cstdint>
#include <limits>

namespace commfuse::math::detail {

static_assert(std::numeric_limits<double>::is_iec559 && FLT_EVAL_METHOD == 0,
              "doubles are IEEE 754 and expressions of doubles have no excess precision");

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr std::uint64_t to_bits(double x) { return std::bit_cast<std::uint64_t>(x); }
constexpr double from_bits(std::uint64_t bits) { return std::bit_cast<double>(bits); }

/// Returns sign, exponent and the upper 20 bits of the mantissa.
constexpr std::uint32_t high_word(double x) { return static_cast<std::uint32_t>(to_bits(x) >> 32); }
/// Returns sign and exponent.
constexpr std::uint32_t top_12(double x) { return static_cast<std::uint32_t>(to_bits(x) >> 52); }

constexpr bool is_nan(double x) { return x != x; }
constexpr bool is_negative(double x) { return (to_bits(x) >> 63) != 0; }
constexpr double absolute(double x) { return from_bits(to_bits(x) & ~(std::uint64_t{1} << 63)); }

/// Returns x with its lower 32 bits cleared, so that the product of two such values is exact.
constexpr double upper_half(double x) { return from_bits(to_bits(x) & ~std::uint64_t{0xffffffff}); }

}  // namespace commfuse::math::detail
