// SPDX-License-Identifier: Apache-2.0
#include "model/fit/fit_quality.h"

#include "model/fit/robust_fit.h"

namespace commfuse {

FitQuality fit_quality(const std::vector<double>& errors) {
  if (errors.empty()) {
    return {};
  }
  return {.rows = errors.size(),
          .median = quantile(errors, 0.5),
          .p68 = quantile(errors, 0.68),
          .p90 = quantile(errors, 0.9),
          .max = quantile(errors, 1.0)};
}

}  // namespace commfuse
