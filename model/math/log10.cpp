// SPDX-License-Identifier: Apache-2.0 AND SunPro
// ====================================================
// Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved.
//
// Developed at SunPro, a Sun Microsystems, Inc. business.
// Permission to use, copy, modify, and distribute this
// software is freely granted, provided that this notice
// is preserved.
// ====================================================
// From FreeBSD's msun (e_log10.c) by way of musl 1.2.3, without floating-point exceptions.
#include "model/math/bits.h"
#include "model/math/functions.h"
#include "model/math/log_parts.h"
#include "model/math/log_series.h"

namespace commfuse::math {

// x = 2^k (1 + f), so log10(x) = log(1 + f) / ln10 + k log10(2), each of them in two doubles.
double log10(double x) {
  constexpr double inverse_ln10_high = 4.34294481878168880939e-01;
  constexpr double inverse_ln10_low = 2.50829467116452752298e-11;
  constexpr double log10_of_2_high = 3.01029995663611771306e-01;
  constexpr double log10_of_2_low = 3.69423907715893078616e-13;

  if (detail::has_special_log(x)) {
    return detail::special_log(x);
  }
  if (x == 1.0) {
    return 0.0;
  }
  int k = 0;
  if (detail::top_12(x) == 0) {
    k = -54;
    x *= 0x1p54;
  }
  const std::uint32_t moved = detail::high_word(x) + detail::to_sqrt_half;
  k += static_cast<int>(moved >> 20) - 0x3ff;
  const std::uint64_t word = (moved & 0x000fffff) + 0x3fe6a09e;
  const double f = detail::from_bits(word << 32 | (detail::to_bits(x) & 0xffffffff)) - 1.0;
  const auto [half_square, remainder] = detail::log_series(f);

  const double high = detail::upper_half(f - half_square);
  const double low = f - high - half_square + remainder;
  const double value_high = high * inverse_ln10_high;
  const double exponent = k;
  const double y = exponent * log10_of_2_high;
  double value_low = exponent * log10_of_2_low + (low + high) * inverse_ln10_low + low * inverse_ln10_high;
  const double sum = y + value_high;
  value_low += (y - sum) + value_high;
  return value_low + sum;
}

}  // namespace commfuse::math
