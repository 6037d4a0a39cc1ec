// SPDX-License-Identifier: Apache-2.0
#include "model/record/score.h"

#include <algorithm>
#include <cmath>

namespace commfuse {

namespace {

double percentile_of(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(position));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

PayScore& PayScore::operator+=(const PayScore& other) {
  wins += other.wins;
  wins_predicted += other.wins_predicted;
  losses += other.losses;
  losses_predicted += other.losses_predicted;
  sure += other.sure;
  sure_predicted += other.sure_predicted;
  return *this;
}

std::optional<double> PayScore::balanced_accuracy() const {
  if (wins == 0 || losses == 0) {
    return std::nullopt;
  }
  const auto share = [](std::int64_t predicted, std::int64_t actual) {
    return static_cast<double>(predicted) / static_cast<double>(actual);
  };
  return (share(wins_predicted, wins) + share(losses_predicted, losses)) / 2.0;
}

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
