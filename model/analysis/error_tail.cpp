// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/error_tail.h"

#include <cmath>

namespace commfuse {

namespace {

/// Where Student's t with four degrees of freedom is below with 84.13 %, as the normal distribution at 1.
constexpr double one_standard_error = 1.1416266290909542;

}  // namespace

double share_below(double standard_errors) {
  const double t = one_standard_error * standard_errors;
  // Johnson, Kotz and Balakrishnan, "Continuous Univariate Distributions", volume 2, 1995, 28.2: 1/2 + 3/4 (q - q^3 /
  // 3) with q = t / sqrt(4 + t^2), written so that neither 0 nor infinity hurts.
  const double q = std::copysign(1.0 / std::sqrt(1.0 + 4.0 / (t * t)), t);
  return 0.5 + 0.75 * (q - q * q * q / 3.0);
}

}  // namespace commfuse
