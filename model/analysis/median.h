// SPDX-License-Identifier: Apache-2.0
// The median of a few numbers.
#pragma once

#include <vector>

namespace commfuse {

/// Returns the median; the mean of the two middle values if their number is even. Requires at least one value.
double median(std::vector<double> values);

}  // namespace commfuse
