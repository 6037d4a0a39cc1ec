// SPDX-License-Identifier: Apache-2.0 AND MIT
// Copyright (c) 2018, Arm Limited. The MIT licence of this file is in model/math/LICENSES.
// From musl 1.2.3 (exp.c, pow.c), without FMA and floating-point exceptions.
#include "model/math/bits.h"
#include "model/math/exp_table.h"
#include "model/math/functions.h"

namespace commfuse::math {

namespace detail {

namespace {

/// Returns scale * (1 + fraction) if the exponent of the result may leave the range of normal doubles. The exponent in
/// `scale_bits` may have overflowed into the sign.
double scaled(double fraction, std::uint64_t scale_bits, bool exponent_is_positive) {
  if (exponent_is_positive) {
    const double scale = from_bits(scale_bits - (std::uint64_t{1009} << 52));
    return 0x1p1009 * (scale + scale * fraction);
  }
  scale_bits += std::uint64_t{1022} << 52;
  const double scale = from_bits(scale_bits);
  double y = scale + scale * fraction;
  if (absolute(y) < 1.0) {
    // A subnormal result must be rounded once, to its last bit, and not again when it is scaled.
    const double unit = y < 0.0 ? -1.0 : 1.0;
    const double rest = scale - y + scale * fraction;
    const double high = unit + y;
    const double low = unit - high + y + rest;
    y = (high + low) - unit;
    if (y == 0.0) {
      y = from_bits(scale_bits & (std::uint64_t{1} << 63));
    }
  }
  return 0x1p-1022 * y;
}

}  // namespace

// x = k ln2/128 + r, so exp(x) = 2^(k/128) exp(r) with |r| <= ln2/256.
double exp_of_sum(double x, double tail, std::uint32_t sign_bias) {
  constexpr double size = exp_table_size;
  constexpr double inverse_ln2 = 0x1.71547652b82fep0 * size;
  constexpr double minus_ln2_high = -0x1.62e42fefa0000p-8;
  constexpr double minus_ln2_low = -0x1.cf79abc9e3b3ap-47;
  constexpr double shift = 0x1.8p52;  // adding it rounds to an integer, which is then in the low bits
  constexpr double c2 = 0x1.ffffffffffdbdp-2;
  constexpr double c3 = 0x1.555555555543cp-3;
  constexpr double c4 = 0x1.55555cf172b91p-5;
  constexpr double c5 = 0x1.1111167a4d017p-7;

  const std::uint32_t magnitude = top_12(x) & 0x7ff;
  const bool is_large = magnitude >= top_12(512.0);
  if (magnitude < top_12(0x1p-54)) {
    return sign_bias != 0 ? -(1.0 + x) : 1.0 + x;
  }
  if (magnitude >= top_12(1024.0)) {
    const double result = is_negative(x) ? 0.0 : infinity;
    return sign_bias != 0 ? -result : result;
  }
  double k = inverse_ln2 * x + shift;
  const std::uint64_t k_bits = to_bits(k);
  k -= shift;
  const double r = (x + k * minus_ln2_high + k * minus_ln2_low) + tail;
  const ScaleEntry& entry = exp_table[k_bits % exp_table_size];
  const std::uint64_t scale_bits = entry.scale_bits + ((k_bits + sign_bias) << (52 - exp_table_bits));
  const double r2 = r * r;
  const double fraction = from_bits(entry.tail_bits) + r + r2 * (c2 + r * c3) + r2 * r2 * (c4 + r * c5);
  if (is_large) {
    return scaled(fraction, scale_bits, (k_bits & 0x80000000) == 0);
  }
  const double scale = from_bits(scale_bits);
  return scale + scale * fraction;
}

}  // namespace detail

double exp(double x) {
  if (detail::is_nan(x)) {
    return detail::nan;
  }
  if (detail::absolute(x) == detail::infinity) {
    return detail::is_negative(x) ? 0.0 : detail::infinity;
  }
  return detail::exp_of_sum(x, 0.0, 0);
}

}  // namespace commfuse::math
