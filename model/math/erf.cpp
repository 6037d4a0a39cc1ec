// SPDX-License-Identifier: Apache-2.0 AND SunPro
// ====================================================
// Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved.
//
// Developed at SunPro, a Sun Microsystems, Inc. business.
// Permission to use, copy, modify, and distribute this
// software is freely granted, provided that this notice
// is preserved.
// ====================================================
// Below 0.5 and above 3 from FreeBSD's msun (s_erf.c) by way of musl 1.2.3, without floating-point exceptions. Above 3,
// erfc is one exp of a sum in two doubles, where msun multiplies two exps. From 0.5 to 3 it is a Taylor series around
// points of a table, where msun's rational functions are off by more than 2 ulp.
#include <array>
#include <cstddef>

#include "model/math/bits.h"
#include "model/math/erfc_table.h"
#include "model/math/exp_table.h"
#include "model/math/functions.h"

namespace commfuse::math {

namespace {

// Coefficients of numerators and denominators, from the constant on.
constexpr double slope_at_zero_times_8 = 1.02703333676410069053e+00;  // 8 (2/sqrt(pi) - 1)
// They approximate (erf(x) - x) / x below 0.84375, in x^2.
constexpr std::array<double, 5> small_p = {1.28379167095512558561e-01, -3.25042107247001499370e-01,
                                           -2.84817495755985104766e-02, -5.77027029648944159157e-03,
                                           -2.37630166566501626084e-05};
constexpr std::array<double, 6> small_q = {1.0,
                                           3.97917223959155352819e-01,
                                           6.50222499887672944485e-02,
                                           5.08130628187576562776e-03,
                                           1.32494738004321644526e-04,
                                           -3.96022827877536812320e-06};
// They are for x from 1/0.35 to 28, in 1/x^2.
constexpr std::array<double, 7> tail_p = {
    -9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e+01, -1.60636384855821916062e+02,
    -6.37566443368389627722e+02, -1.02509513161107724954e+03, -4.83519191608651397019e+02};
constexpr std::array<double, 8> tail_q = {1.0,
                                          3.03380607434824582924e+01,
                                          3.25792512996573918826e+02,
                                          1.53672958608443695994e+03,
                                          3.19985821950859553908e+03,
                                          2.55305040643316442583e+03,
                                          4.74528541206955367215e+02,
                                          -2.24409524465858183362e+01};

template <std::size_t size>
double polynomial(const std::array<double, size>& coefficients, double x) {
  double sum = coefficients[size - 1];
  for (std::size_t i = size - 1; i-- > 0;) {
    sum = coefficients[i] + x * sum;
  }
  return sum;
}

/// Returns (erf(x) - x) / x for |x| < 0.5.
double small_ratio(double x) {
  const double z = x * x;
  return polynomial(small_p, z) / polynomial(small_q, z);
}

/// Returns erfc for x from 0.5 to 3. With r the nearest point of the table and d = x - r, erfc(x) = erfc(r) - slope *
/// (integral of exp(-2rt - t^2) from 0 to d), and the coefficients of that exp follow from one another.
double middle(double x) {
  constexpr double steps = 64.0;
  constexpr int terms = 10;
  const int step = static_cast<int>(x * steps + 0.5);
  const double r = step / steps;
  const double d = x - r;
  const detail::ErfcEntry& entry = detail::erfc_table[static_cast<std::size_t>(step - detail::erfc_table_first)];
  double before = 0.0;
  double coefficient = 1.0;
  double power = d;
  double sum = 0.0;
  for (int n = 1; n < terms; ++n) {
    const double next = -2.0 * (r * coefficient + before) / n;
    before = coefficient;
    coefficient = next;
    power *= d;
    sum += coefficient * power / (n + 1);
  }
  return entry.value - (entry.slope * (d + sum) - entry.value_tail);
}

/// Returns erfc for x from 3 to 28: exp(-x^2 - 0.5625 + ratio) / x.
double tail(double x) {
  const double s = 1.0 / (x * x);
  const double ratio = polynomial(tail_p, s) / polynomial(tail_q, s);
  // The exponent in two doubles: the square of z is exact.
  const double z = detail::upper_half(x);
  const double high = -z * z - 0.5625;
  const double low = (z - x) * (z + x) + ratio;
  const double sum = high + low;
  return detail::exp_of_sum(sum, low - (sum - high), 0) / x;
}

/// Returns erfc for x from 0.5 to 28.
double large_erfc(double x) { return x < 3.0 ? middle(x) : tail(x); }

}  // namespace

double erf(double x) {
  if (detail::is_nan(x)) {
    return detail::nan;
  }
  const double magnitude = detail::absolute(x);
  if (magnitude < 0x1p-28) {
    return 0.125 * (8.0 * x + slope_at_zero_times_8 * x);
  }
  if (magnitude < 0.5) {
    return x + x * small_ratio(x);
  }
  const double result = magnitude < 6.0 ? 1.0 - large_erfc(magnitude) : 1.0;
  return detail::is_negative(x) ? -result : result;
}

double erfc(double x) {
  if (detail::is_nan(x)) {
    return detail::nan;
  }
  const double magnitude = detail::absolute(x);
  if (magnitude < 0x1p-56) {
    return 1.0 - x;
  }
  if (magnitude < 0.5) {
    const double rest = x * small_ratio(x);
    return x < 0.25 ? 1.0 - (x + rest) : 0.5 - (x - 0.5 + rest);
  }
  if (magnitude < 28.0) {
    return detail::is_negative(x) ? 2.0 - large_erfc(magnitude) : large_erfc(x);
  }
  return detail::is_negative(x) ? 2.0 : 0.0;
}

}  // namespace commfuse::math
