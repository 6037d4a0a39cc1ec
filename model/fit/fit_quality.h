// SPDX-License-Identifier: Apache-2.0
// Accuracy of a fit: errors of single rows, as median and percentiles.
#pragma once

#include <cstddef>
#include <vector>

namespace commfuse {

/// Summary of e = |predicted / measured - 1| over some rows; all 0 without rows.
struct FitQuality {
  std::size_t rows = 0;
  double median = 0.0;
  double p68 = 0.0;  ///< like a standard error: 68% of the errors are no larger
  double p90 = 0.0;
  double max = 0.0;
};

FitQuality fit_quality(const std::vector<double>& errors);

}  // namespace commfuse
