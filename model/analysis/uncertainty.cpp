// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/uncertainty.h"

#include <cmath>

#include "model/analysis/error_tail.h"
#include "model/check.h"
#include "model/math/functions.h"

namespace commfuse {

double error_of(const Uncertainty& uncertainty) { return ratio_error(uncertainty, {}); }

double ratio_error(const Uncertainty& a, const Uncertainty& b) {
  double squares = 0.0;
  auto left = a.doubts.begin();
  auto right = b.doubts.begin();
  while (left != a.doubts.end() || right != b.doubts.end()) {
    const bool only_left = right == b.doubts.end() || (left != a.doubts.end() && left->of < right->of);
    const bool only_right = left == a.doubts.end() || (right != b.doubts.end() && right->of < left->of);
    const double effect = (only_right ? 0.0 : left->effect) - (only_left ? 0.0 : right->effect);
    squares += effect * effect;
    left += only_right ? 0 : 1;
    right += only_left ? 0 : 1;
  }
  return std::sqrt(squares);
}

double probability_shorter(Duration a, const Uncertainty& of_a, Duration b, const Uncertainty& of_b) {
  check(a > Duration{} && b > Duration{}, "a time is above 0");
  if (a == b) {
    return 0.5;
  }
  const double distance = math::log(to_seconds(b) / to_seconds(a));
  const double error = ratio_error(of_a, of_b);
  return error > 0.0 ? share_below(distance / error) : (distance > 0.0 ? 1.0 : 0.0);
}

}  // namespace commfuse
