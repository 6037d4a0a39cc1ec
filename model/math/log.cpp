// SPDX-License-Identifier: Apache-2.0 AND MIT
// Copyright (c) 2018, Arm Limited. The MIT licence of this file is in model/math/LICENSES.
// From musl 1.2.3 (log.c), without FMA and floating-point exceptions.
#include "model/math/bits.h"
#include "model/math/functions.h"
#include "model/math/log_parts.h"
#include "model/math/log_table.h"

namespace commfuse::math {

namespace {

/// Returns log(1 + r) for 1 + r from 1 - 2^-4 to 1 + 1.04 * 2^-4. The first two terms of the series are added in two
/// doubles.
double log_near_one(double r) {
  constexpr double b0 = -0x1p-1;
  constexpr double b1 = 0x1.5555555555577p-2;
  constexpr double b2 = -0x1.ffffffffffdcbp-3;
  constexpr double b3 = 0x1.999999995dd0cp-3;
  constexpr double b4 = -0x1.55555556745a7p-3;
  constexpr double b5 = 0x1.24924a344de3p-3;
  constexpr double b6 = -0x1.fffffa4423d65p-4;
  constexpr double b7 = 0x1.c7184282ad6cap-4;
  constexpr double b8 = -0x1.999eb43b068ffp-4;
  constexpr double b9 = 0x1.78182f7afd085p-4;
  constexpr double b10 = -0x1.5521375d145cdp-4;
  const double r2 = r * r;
  const double r3 = r * r2;
  double y = r3 * (b1 + r * b2 + r2 * b3 + r3 * (b4 + r * b5 + r2 * b6 + r3 * (b7 + r * b8 + r2 * b9 + r3 * b10)));
  const double shifted = r * 0x1p27;
  const double r_high = r + shifted - shifted;
  const double r_low = r - r_high;
  const double square = r_high * r_high * b0;
  const double high = r + square;
  double low = r - high + square;
  low += b0 * r_low * (r_high + r);
  y += low;
  y += high;
  return y;
}

}  // namespace

// x = 2^k z and z = c (1 + r), so log(x) = log1p(r) + log(c) + k ln2.
double log(double x) {
  constexpr std::uint64_t origin = 0x3fe6000000000000;
  constexpr double ln2_high = 0x1.62e42fefa3800p-1;
  constexpr double ln2_low = 0x1.ef35793c76730p-45;
  constexpr double a0 = -0x1.0000000000001p-1;
  constexpr double a1 = 0x1.555555551305bp-2;
  constexpr double a2 = -0x1.fffffffeb459p-3;
  constexpr double a3 = 0x1.999b324f10111p-3;
  constexpr double a4 = -0x1.55575e506c89fp-3;

  if (detail::has_special_log(x)) {
    return detail::special_log(x);
  }
  if (x >= 1.0 - 0x1p-4 && x < 1.0 + 0x1.09p-4) {
    return x == 1.0 ? 0.0 : log_near_one(x - 1.0);
  }
  const detail::LogParts parts = detail::log_parts(detail::normalized_bits(x), origin, detail::log_table_bits);
  const detail::LogEntry& entry = detail::log_table[parts.interval];
  const double r = (parts.mantissa - entry.center - entry.center_tail) * entry.inverse;
  const double w = parts.exponent * ln2_high + entry.log;
  const double high = w + r;
  const double low = w - high + r + parts.exponent * ln2_low;
  const double r2 = r * r;
  return low + r2 * a0 + r * r2 * (a1 + r * a2 + r2 * (a3 + r * a4)) + high;
}

}  // namespace commfuse::math
