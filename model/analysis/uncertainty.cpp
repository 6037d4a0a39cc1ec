// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/uncertainty.h"

#include <cmath>

#include "model/analysis/error_tail.h"
#include "model/check.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

/// Visits every doubt of either prediction, with both effects, in order.
template <typename Visit>
void each_doubt(const Uncertainty& a, const Uncertainty& b, Visit&& visit) {
  auto next_a = a.doubts.begin();
  auto next_b = b.doubts.begin();
  while (next_a != a.doubts.end() || next_b != b.doubts.end()) {
    const bool only_a = next_b == b.doubts.end() || (next_a != a.doubts.end() && next_a->of < next_b->of);
    const bool only_b = next_a == a.doubts.end() || (next_b != b.doubts.end() && next_b->of < next_a->of);
    visit(only_b ? next_b->of : next_a->of, only_b ? 0.0 : next_a->effect, only_a ? 0.0 : next_b->effect);
    next_a += only_b ? 0 : 1;
    next_b += only_a ? 0 : 1;
  }
}

double covariance(const Uncertainty& a, const Uncertainty& b) {
  double sum = 0.0;
  each_doubt(a, b, [&](const DoubtOf&, double of_a, double of_b) { sum += of_a * of_b; });
  return sum;
}

/// Returns the share of the measured error that is expected to recur in the other prediction.
double shared_part(const Uncertainty& uncertainty, const Evidence& evidence) {
  const double variance = covariance(evidence.of, evidence.of);
  check(variance > 0.0, "evidence has at least one doubt");
  return covariance(uncertainty, evidence.of) / variance;
}

}  // namespace

double error_of(const Uncertainty& uncertainty) { return ratio_error(uncertainty, {}); }

double ratio_error(const Uncertainty& a, const Uncertainty& b) {
  double squares = 0.0;
  each_doubt(a, b, [&](const DoubtOf&, double of_a, double of_b) { squares += (of_a - of_b) * (of_a - of_b); });
  return std::sqrt(squares);
}

double expected_log_ratio(const Uncertainty& uncertainty, const Evidence& evidence) {
  return shared_part(uncertainty, evidence) * evidence.log_ratio;
}

Uncertainty given(const Uncertainty& uncertainty, const Evidence& evidence) {
  const double part = shared_part(uncertainty, evidence);
  Uncertainty remaining;
  each_doubt(uncertainty, evidence.of, [&](const DoubtOf& of, double effect, double measured) {
    if (const double rest = effect - part * measured; rest != 0.0) {
      remaining.doubts.push_back({of, rest});
    }
  });
  return remaining;
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
