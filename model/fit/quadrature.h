// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace commfuse {

/// The standard deviation of a sum whose terms have these and are independent.
inline double in_quadrature(double a, double b) { return std::sqrt(a * a + b * b); }

}  // namespace commfuse
