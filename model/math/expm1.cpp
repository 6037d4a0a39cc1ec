// SPDX-License-Identifier: Apache-2.0 AND SunPro
// ====================================================
// Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved.
//
// Developed at SunPro, a Sun Microsystems, Inc. business.
// Permission to use, copy, modify, and distribute this
// software is freely granted, provided that this notice
// is preserved.
// ====================================================
// From FreeBSD's msun (s_expm1.c) by way of musl 1.2.3, without floating-point exceptions.
#include "model/math/bits.h"
#include "model/math/functions.h"

namespace commfuse::math {

namespace {

constexpr double ln2_high = 6.93147180369123816490e-01;
constexpr double ln2_low = 1.90821492927058770002e-10;
constexpr double inverse_ln2 = 1.44269504088896338700e+00;

/// x = k ln2 + r + correction, with |r| <= ln2 / 2.
struct Reduced {
  int k = 0;
  double r = 0.0;
  double correction = 0.0;
};

Reduced reduced(double x) {
  const std::uint32_t magnitude = detail::high_word(x) & 0x7fffffff;
  if (magnitude <= 0x3fd62e42) {  // |x| <= ln2 / 2
    return {.r = x};
  }
  Reduced result;
  double high = 0.0;
  double low = 0.0;
  if (magnitude < 0x3ff0a2b2) {  // |x| < 1.5 ln2
    result.k = x < 0.0 ? -1 : 1;
    high = x < 0.0 ? x + ln2_high : x - ln2_high;
    low = x < 0.0 ? -ln2_low : ln2_low;
  } else {
    result.k = static_cast<int>(inverse_ln2 * x + (x < 0.0 ? -0.5 : 0.5));
    const double k = result.k;
    high = x - k * ln2_high;  // k * ln2_high is exact.
    low = k * ln2_low;
  }
  result.r = high - low;
  result.correction = (high - result.r) - low;
  return result;
}

double power_of_two(int exponent) { return detail::from_bits(static_cast<std::uint64_t>(0x3ff + exponent) << 52); }

}  // namespace

// expm1(x) = 2^k (expm1(r) + 1) - 1, and r (exp(r) + 1) / (exp(r) - 1) = 2 + r^2/6 R1(r^2) by a polynomial.
double expm1(double x) {
  constexpr double overflow = 7.09782712893383973096e+02;
  constexpr double q1 = -3.33333333333331316428e-02;
  constexpr double q2 = 1.58730158725481460165e-03;
  constexpr double q3 = -7.93650757867487942473e-05;
  constexpr double q4 = 4.00821782732936239552e-06;
  constexpr double q5 = -2.01099218183624371326e-07;

  if (detail::is_nan(x)) {
    return detail::nan;
  }
  const std::uint32_t magnitude = detail::high_word(x) & 0x7fffffff;
  if (magnitude >= 0x4043687a) {  // |x| >= 56 ln2
    if (x < 0.0) {
      return -1.0;
    }
    if (x > overflow) {
      return detail::infinity;
    }
  }
  if (magnitude < 0x3c900000) {  // |x| < 2^-54
    return x;
  }
  const auto [k, r, correction] = reduced(x);
  const double half = 0.5 * r;
  const double half_square = r * half;
  const double r1 =
      1.0 + half_square * (q1 + half_square * (q2 + half_square * (q3 + half_square * (q4 + half_square * q5))));
  const double t = 3.0 - r1 * half;
  double e = half_square * ((r1 - t) / (6.0 - r * t));
  if (k == 0) {
    return r - (r * e - half_square);
  }
  e = r * (e - correction) - correction;
  e -= half_square;
  if (k == -1) {
    return 0.5 * (r - e) - 0.5;
  }
  if (k == 1) {
    return r < -0.25 ? -2.0 * (e - (r + 0.5)) : 1.0 + 2.0 * (r - e);
  }
  if (k < 0 || k > 56) {  // exp(x) - 1 is exact enough.
    const double y = r - e + 1.0;
    return (k == 1024 ? y * 2.0 * 0x1p1023 : y * power_of_two(k)) - 1.0;
  }
  const double inverse = power_of_two(-k);
  return k < 20 ? (r - e + (1.0 - inverse)) * power_of_two(k) : (r - (e + inverse) + 1.0) * power_of_two(k);
}

}  // namespace commfuse::math
