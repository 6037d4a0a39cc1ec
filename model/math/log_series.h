// SPDX-License-Identifier: Apache-2.0 AND SunPro
// ====================================================
// Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved.
//
// Developed at SunPro, a Sun Microsystems, Inc. business.
// Permission to use, copy, modify, and distribute this
// software is freely granted, provided that this notice
// is preserved.
// ====================================================
// The polynomial of log1p and log10, from FreeBSD's msun (s_log1p.c, e_log10.c) by way of musl 1.2.3.
#pragma once

namespace commfuse::math::detail {

/// log(1 + f) = f - half_square + remainder, for 1 + f between sqrt(1/2) and sqrt(2).
struct LogSeries {
  double half_square;
  double remainder;
};

inline LogSeries log_series(double f) {
  constexpr double lg1 = 6.666666666666735130e-01;
  constexpr double lg2 = 3.999999999940941908e-01;
  constexpr double lg3 = 2.857142874366239149e-01;
  constexpr double lg4 = 2.222219843214978396e-01;
  constexpr double lg5 = 1.818357216161805012e-01;
  constexpr double lg6 = 1.531383769920937332e-01;
  constexpr double lg7 = 1.479819860511658591e-01;
  const double half_square = 0.5 * f * f;
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double w = z * z;
  const double t1 = w * (lg2 + w * (lg4 + w * lg6));
  const double t2 = z * (lg1 + w * (lg3 + w * (lg5 + w * lg7)));
  return {.half_square = half_square, .remainder = s * (half_square + (t2 + t1))};
}

/// Added to the high word of x, it makes the exponent that of x / sqrt(1/2).
constexpr unsigned to_sqrt_half = 0x3ff00000 - 0x3fe6a09e;

}  // namespace commfuse::math::detail
