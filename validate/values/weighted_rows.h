// SPDX-License-Identifier: Apache-2.0
// Weighted sums of rows: the inner loop of products and of attention.
#pragma once

#include <span>

#include "validate/values/matrix.h"

namespace commfuse::validate {

/// Sets sums[j] to the sum of weights[k] * row k [j] over the first weights.size() rows. Each sum starts at 0, adds one
/// row after the other, and rounds every product and every addition, so its bits do not depend on the processor's
/// vectors. Requires sums.size() <= rows.columns and weights.size() <= rows.rows.
void weighted_sum(std::span<const float> weights, const Rows<const float>& rows, std::span<float> sums);
void weighted_sum(std::span<const double> weights, const Rows<const double>& rows, std::span<double> sums);

}  // namespace commfuse::validate
