// SPDX-License-Identifier: Apache-2.0 AND SunPro
// ====================================================
// Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved.
//
// Developed at SunPro, a Sun Microsystems, Inc. business.
// Permission to use, copy, modify, and distribute this
// software is freely granted, provided that this notice
// is preserved.
// ====================================================
// From FreeBSD's msun (s_log1p.c) by way of musl 1.2.3, without floating-point exceptions.
#include "model/math/bits.h"
#include "model/math/functions.h"
#include "model/math/log_series.h"

namespace commfuse::math {

// 1 + x = 2^k (1 + f), so log1p(x) = k ln2 + log(1 + f) + a correction for the rounding of 1 + x.
double log1p(double x) {
  constexpr double ln2_high = 6.93147180369123816490e-01;
  constexpr double ln2_low = 1.90821492927058770002e-10;

  if (!(x > -1.0)) {
    return x == -1.0 ? -detail::infinity : detail::nan;
  }
  if (x == detail::infinity) {
    return x;
  }
  const std::uint32_t word = detail::high_word(x);
  if ((word & 0x7fffffff) < 0x3ca00000) {  // |x| < 2^-53
    return x;
  }
  int k = 0;
  double f = x;
  double correction = 0.0;
  const bool is_near_zero = detail::is_negative(x) ? word <= 0xbfd2bec4 : word < 0x3fda827a;
  if (!is_near_zero) {  // 1 + x is not between sqrt(1/2) and sqrt(2).
    const double u = 1.0 + x;
    const std::uint32_t moved = detail::high_word(u) + detail::to_sqrt_half;
    k = static_cast<int>(moved >> 20) - 0x3ff;
    if (k < 54) {
      correction = (k >= 2 ? 1.0 - (u - x) : x - (u - 1.0)) / u;
    }
    const std::uint64_t high = (moved & 0x000fffff) + 0x3fe6a09e;
    f = detail::from_bits(high << 32 | (detail::to_bits(u) & 0xffffffff)) - 1.0;
  }
  const auto [half_square, remainder] = detail::log_series(f);
  const double exponent = k;
  return remainder + (exponent * ln2_low + correction) - half_square + f + exponent * ln2_high;
}

}  // namespace commfuse::math
