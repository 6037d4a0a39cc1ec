// SPDX-License-Identifier: Apache-2.0
// How well a fit predicts: errors of single rows, summed up as the project counts them.
#pragma once

#include <cstddef>
#include <vector>

namespace commfuse {

/// Of e = |predicted / measured - 1| over some rows; all 0 without rows.
struct FitQuality {
  std::size_t rows = 0;
  double median = 0.0;
  double p68 = 0.0;  ///< As a standard error: two thirds are off by no more.
  double p90 = 0.0;
  double max = 0.0;
};

FitQuality fit_quality(const std::vector<double>& errors);

}  // namespace commfuse
