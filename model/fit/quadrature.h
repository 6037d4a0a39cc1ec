// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace commfuse {

/// Returns the standard deviation of a sum whose independent terms have these standard deviations.
inline double in_quadrature(double a, double b) { return std::sqrt(a * a + b * b); }

}  // namespace commfuse
