// SPDX-License-Identifier: Apache-2.0
#include "model/record/score.h"

#include <algorithm>
#include <cmath>

namespace commfuse {

namespace {

double percentile_of(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

ErrorSummary summary_of(std::vector<double> errors) {
  if (errors.empty()) {
    return {};
  }
  std::sort(errors.begin(), errors.end());
  return {.n = static_cast<std::int64_t>(errors.size()),
          .median = percentile_of(errors, 0.5),
          .p68 = percentile_of(errors, 0.68),
          .p90 = percentile_of(errors, 0.9),
          .max = errors.back()};
}

}  // namespace commfuse
