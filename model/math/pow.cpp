// SPDX-License-Identifier: Apache-2.0 AND MIT
// Copyright (c) 2018, Arm Limited. The MIT licence of this file is in model/math/LICENSES.
// From musl 1.2.3 (pow.c), without FMA and floating-point exceptions.
#include "model/math/bits.h"
#include "model/math/exp_table.h"
#include "model/math/functions.h"
#include "model/math/log_parts.h"
#include "model/math/log_table.h"

namespace commfuse::math {

namespace {

struct TwoDoubles {
  double high;
  double low;
};

/// Returns log(x) to about 68 bits, from normalized_bits(x). x = 2^k z and z = c (1 + r) with r exact.
TwoDoubles precise_log(std::uint64_t x) {
  constexpr std::uint64_t origin = 0x3fe6955500000000;
  constexpr double ln2_high = 0x1.62e42fefa3800p-1;
  constexpr double ln2_low = 0x1.ef35793c76730p-45;
  // Coefficients are scaled by powers of a0, because the polynomial is in a0 * r^2.
  constexpr double a0 = -0x1p-1;
  constexpr double a1 = 0x1.555555555556p-2 * -2;
  constexpr double a2 = -0x1.0000000000006p-2 * -2;
  constexpr double a3 = 0x1.999999959554ep-3 * 4;
  constexpr double a4 = -0x1.555555529a47ap-3 * 4;
  constexpr double a5 = 0x1.2495b9b4845e9p-3 * -8;
  constexpr double a6 = -0x1.0002b8b263fc3p-3 * -8;

  const detail::LogParts parts = detail::log_parts(x, origin, detail::pow_table_bits);
  const detail::PowEntry& entry = detail::pow_table[parts.interval];
  // Splits the mantissa in two parts and rounds the upper half, so that the square of r_high is exact.
  const double z_high =
      detail::from_bits((detail::to_bits(parts.mantissa) + (std::uint64_t{1} << 31)) & ~std::uint64_t{0xffffffff});
  const double z_low = parts.mantissa - z_high;
  const double r_high = z_high * entry.inverse - 1.0;
  const double r_low = z_low * entry.inverse;
  const double r = r_high + r_low;

  const double t1 = parts.exponent * ln2_high + entry.log;
  const double t2 = t1 + r;
  const double low1 = parts.exponent * ln2_low + entry.log_tail;
  const double low2 = t1 - t2 + r;
  const double ar = a0 * r;
  const double ar2 = r * ar;
  const double ar3 = r * ar2;
  const double ar_high = a0 * r_high;
  const double ar2_high = r_high * ar_high;
  const double high = t2 + ar2_high;
  const double low3 = r_low * (ar + ar_high);
  const double low4 = t2 - high + ar2_high;
  const double p = ar3 * (a1 + r * a2 + ar2 * (a3 + r * a4 + ar2 * (a5 + r * a6)));
  const double low = low1 + low2 + low3 + low4 + p;
  const double y = high + low;
  return {.high = y, .low = high - y + low};
}

enum class Parity { fraction, odd, even };

/// Requires a finite value other than 0.
Parity parity_of(double y) {
  const std::uint32_t exponent = detail::top_12(y) & 0x7ff;
  if (exponent < 0x3ff) {
    return Parity::fraction;
  }
  if (exponent > 0x3ff + 52) {
    return Parity::even;
  }
  const std::uint64_t unit = std::uint64_t{1} << (0x3ff + 52 - exponent);
  if ((detail::to_bits(y) & (unit - 1)) != 0) {
    return Parity::fraction;
  }
  return (detail::to_bits(y) & unit) != 0 ? Parity::odd : Parity::even;
}

bool is_odd(double y) { return detail::absolute(y) != detail::infinity && parity_of(y) == Parity::odd; }

/// Returns pow if x or y is 0, infinite or NaN.
double special_pow(double x, double y) {
  if (y == 0.0 || x == 1.0) {
    return 1.0;
  }
  if (detail::is_nan(x) || detail::is_nan(y)) {
    return detail::nan;
  }
  if (detail::absolute(y) == detail::infinity) {
    if (x == -1.0) {
      return 1.0;
    }
    return (detail::absolute(x) < 1.0) == detail::is_negative(y) ? detail::infinity : 0.0;
  }
  const double result = (x == 0.0) == detail::is_negative(y) ? detail::infinity : 0.0;
  return detail::is_negative(x) && is_odd(y) ? -result : result;
}

}  // namespace

double pow(double x, double y) {
  const auto is_special = [](double value) { return value == 0.0 || !(detail::absolute(value) < detail::infinity); };
  if (is_special(x) || is_special(y)) {
    return special_pow(x, y);
  }
  std::uint32_t sign_bias = 0;
  if (x < 0.0) {
    const Parity parity = parity_of(y);
    if (parity == Parity::fraction) {
      return detail::nan;
    }
    sign_bias = parity == Parity::odd ? detail::negative_result : 0;
    x = -x;
  }
  const std::uint32_t exponent = detail::top_12(y) & 0x7ff;
  if (exponent < 0x3be) {  // |y| < 2^-65
    return 1.0;
  }
  if (exponent >= 0x43e) {  // |y| >= 2^63, which is even
    return x == 1.0 ? 1.0 : ((x > 1.0) == (y > 0.0) ? detail::infinity : 0.0);
  }
  const TwoDoubles log_x = precise_log(detail::normalized_bits(x));
  constexpr std::uint64_t upper_37 = ~std::uint64_t{0} << 27;
  const double y_high = detail::from_bits(detail::to_bits(y) & upper_37);
  const double y_low = y - y_high;
  const double log_high = detail::from_bits(detail::to_bits(log_x.high) & upper_37);
  const double log_low = log_x.high - log_high + log_x.low;
  return detail::exp_of_sum(y_high * log_high, y_low * log_high + y * log_low, sign_bias);
}

}  // namespace commfuse::math
