// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/median.h"

#include <algorithm>
#include <cstddef>

#include "model/check.h"

namespace commfuse {

double median(std::vector<double> values) {
  check(!values.empty(), "a median needs values");
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

}  // namespace commfuse
