// SPDX-License-Identifier: Apache-2.0 AND MIT
// Copyright (c) 2018, Arm Limited. The MIT licence of this file is in model/math/LICENSES.
// From musl 1.2.3 (log2.c), without FMA and floating-point exceptions.
#include "model/math/bits.h"
#include "model/math/functions.h"
#include "model/math/log_parts.h"
#include "model/math/log_table.h"

namespace commfuse::math {

namespace {

// 1/ln2 in two doubles, the first of them short.
constexpr double inverse_ln2_high = 0x1.7154765200000p+0;
constexpr double inverse_ln2_low = 0x1.705fc2eefa200p-33;

/// Returns log2(1 + r) for 1 + r from 1 - 1.36 * 2^-5 to 1 + 1.42 * 2^-5.
double log2_near_one(double r) {
  constexpr double b0 = -0x1.71547652b82fep-1;
  constexpr double b1 = 0x1.ec709dc3a03f7p-2;
  constexpr double b2 = -0x1.71547652b7c3fp-2;
  constexpr double b3 = 0x1.2776c50f05be4p-2;
  constexpr double b4 = -0x1.ec709dd768fe5p-3;
  constexpr double b5 = 0x1.a61761ec4e736p-3;
  constexpr double b6 = -0x1.7153fbc64a79bp-3;
  constexpr double b7 = 0x1.484d154f01b4ap-3;
  constexpr double b8 = -0x1.289e4a72c383cp-3;
  constexpr double b9 = 0x1.0b32f285aee66p-3;
  const double r_high = detail::upper_half(r);
  const double r_low = r - r_high;
  const double high = r_high * inverse_ln2_high;
  double low = r_low * inverse_ln2_high + r * inverse_ln2_low;
  const double r2 = r * r;
  const double r4 = r2 * r2;
  const double p = r2 * (b0 + r * b1);
  const double y = high + p;
  low += high - y + p;
  low += r4 * (b2 + r * b3 + r2 * (b4 + r * b5) + r4 * (b6 + r * b7 + r2 * (b8 + r * b9)));
  return y + low;
}

}  // namespace

// x = 2^k z and z = c (1 + r), so log2(x) = log1p(r) / ln2 + log2(c) + k.
double log2(double x) {
  constexpr std::uint64_t origin = 0x3fe6000000000000;
  constexpr double a0 = -0x1.71547652b8339p-1;
  constexpr double a1 = 0x1.ec709dc3a04bep-2;
  constexpr double a2 = -0x1.7154764702ffbp-2;
  constexpr double a3 = 0x1.2776c50034c48p-2;
  constexpr double a4 = -0x1.ec7b328ea92bcp-3;
  constexpr double a5 = 0x1.a6225e117f92ep-3;

  if (detail::has_special_log(x)) {
    return detail::special_log(x);
  }
  if (x >= 1.0 - 0x1.5b51p-5 && x < 1.0 + 0x1.6ab2p-5) {
    return x == 1.0 ? 0.0 : log2_near_one(x - 1.0);
  }
  const detail::LogParts parts = detail::log_parts(detail::normalized_bits(x), origin, detail::log2_table_bits);
  const detail::LogEntry& entry = detail::log2_table[parts.interval];
  const double r = (parts.mantissa - entry.center - entry.center_tail) * entry.inverse;
  const double r_high = detail::upper_half(r);
  const double r_low = r - r_high;
  const double t1 = r_high * inverse_ln2_high;
  const double t2 = r_low * inverse_ln2_high + r * inverse_ln2_low;
  const double t3 = parts.exponent + entry.log;
  const double high = t3 + t1;
  const double low = t3 - high + t1 + t2;
  const double r2 = r * r;
  const double r4 = r2 * r2;
  const double p = a0 + r * a1 + r2 * (a2 + r * a3) + r4 * (a4 + r * a5);
  return low + r2 * p + high;
}

}  // namespace commfuse::math
