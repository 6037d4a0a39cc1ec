// SPDX-License-Identifier: Apache-2.0 AND MIT
// Copyright (c) 2018, Arm Limited. The MIT licence of this file is in model/math/LICENSES.
// Splits the arguments of log, log2 and pow into exponent and mantissa; from musl 1.2.3 (log.c, log2.c, pow.c).
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/math/bits.h"

namespace commfuse::math::detail {

/// x = 2^exponent * mantissa, with the mantissa in [origin, 2 * origin) and in the interval `interval` of 2^bits.
struct LogParts {
  double exponent;
  double mantissa;
  std::size_t interval;
};

/// Splits a positive number into its parts. `x` holds its bits; a subnormal number must be normalized as by
/// normalized_bits().
inline LogParts log_parts(std::uint64_t x, std::uint64_t origin, int bits) {
  const std::uint64_t above = x - origin;
  return {.exponent = static_cast<double>(static_cast<std::int64_t>(above) >> 52),
          .mantissa = from_bits(x - (above & (std::uint64_t{0xfff} << 52))),
          .interval = static_cast<std::size_t>(above >> (52 - bits)) & ((std::size_t{1} << bits) - 1)};
}

/// Returns the bits of a positive x. A subnormal x is normalized; its exponent field is then below the range of doubles
/// (negative).
inline std::uint64_t normalized_bits(double x) {
  return top_12(x) == 0 ? to_bits(x * 0x1p52) - (std::uint64_t{52} << 52) : to_bits(x);
}

/// Returns true if log(x) is a special value or undefined: for 0, negative, infinite or NaN.
inline bool has_special_log(double x) { return !(x > 0.0) || x == infinity; }
/// Returns log(x) for an x with has_special_log(x).
inline double special_log(double x) { return x == 0.0 ? -infinity : (x == infinity ? infinity : nan); }

}  // namespace commfuse::math::detail
