// SPDX-License-Identifier: Apache-2.0
// Accuracy of a fit: errors of single rows, as median and percentiles.
#pragma once

#include <cmath>
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

/// Returns the summary for rows whose predicted / measured time is ratio_of(row).
template <class Row, class RatioOf>
FitQuality fit_quality(const std::vector<Row>& rows, const RatioOf& ratio_of) {
  std::vector<double> errors;
  errors.reserve(rows.size());
  for (const Row& row : rows) {
    errors.push_back(std::abs(ratio_of(row) - 1.0));
  }
  return fit_quality(errors);
}

}  // namespace commfuse
