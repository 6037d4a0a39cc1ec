// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/error_tail.h"

#include <cmath>

#include "model/check.h"

namespace commfuse {

namespace {

/// Quantile of Student's t with four degrees of freedom at 84.13%, the share of the standard normal distribution below
/// 1.
constexpr double one_standard_error = 1.1416266290909542;

}  // namespace

double share_below(double standard_errors) {
  const double t = one_standard_error * standard_errors;
  // Follows Johnson, Kotz and Balakrishnan, "Continuous Univariate Distributions", volume 2, 1995, 28.2: 1/2 + 3/4 (q -
  // q^3 / 3) with q = t / sqrt(4 + t^2), written so that both 0 and infinity work.
  const double q = std::copysign(1.0 / std::sqrt(1.0 + 4.0 / (t * t)), t);
  return 0.5 + 0.75 * (q - q * q * q / 3.0);
}

double errors_with_share_below(double share) {
  check(share > 0.0 && share < 1.0, "some errors lie below, and some above");
  // Bisects: q - q^3 / 3 rises from -2/3 at -1 to 2/3 at 1.
  const double sought = (share - 0.5) / 0.75;
  double low = -1.0;
  double high = 1.0;
  for (int i = 0; i < 60; ++i) {
    const double q = 0.5 * (low + high);
    (q - q * q * q / 3.0 < sought ? low : high) = q;
  }
  const double q = 0.5 * (low + high);
  return 2.0 * q / std::sqrt(1.0 - q * q) / one_standard_error;
}

}  // namespace commfuse
