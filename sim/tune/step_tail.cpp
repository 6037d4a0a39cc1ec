// SPDX-License-Identifier: Apache-2.0
#include "sim/tune/step_tail.h"

#include <cmath>
#include <vector>

#include "model/math/functions.h"
#include "sim/step/group_link.h"

namespace commfuse {

namespace {

constexpr int machines = 1000;  // at equally spaced quantiles of the slowest GPU's slowdown

class Distribution {
 public:
  explicit Distribution(const StepSpread& spread) : groups_(static_cast<double>(spread.groups)) {
    deviation_ = std::sqrt(spread.variance);
    for (int i = 0; i < machines; ++i) {
      const double factor = slowest_of(spread.gpus, spread.rank_sigma, Probability{(i + 0.5) / machines});
      times_.push_back(to_seconds(spread.equal_gpus) + (factor - 1.0) * spread.per_slowdown + spread.excess);
    }
  }

  [[nodiscard]] double mean() const {
    double sum = 0.0;
    for (const double time : times_) {
      sum += time;
    }
    // With sigma 1, the logarithm of slowest_of() is the mean of the largest of `groups_` normal draws.
    return sum / machines + deviation_ * math::log(slowest_of(static_cast<std::int64_t>(groups_), 1.0));
  }

  [[nodiscard]] double quantile(double probability) const {
    if (deviation_ == 0.0) {
      return times_[static_cast<std::size_t>(std::ceil(probability * machines)) - 1];
    }
    constexpr double far = 12.0;
    double below = times_.front() - far * deviation_;
    double above = times_.back() + far * deviation_;
    for (int i = 0; i < 60; ++i) {
      const double middle = 0.5 * (below + above);
      (probability_of(middle) < probability ? below : above) = middle;
    }
    return above;
  }

 private:
  /// Returns the probability that a step takes no longer than `time`.
  [[nodiscard]] double probability_of(double time) const {
    double sum = 0.0;
    for (const double machine_time : times_) {
      sum += math::pow(0.5 * math::erfc((machine_time - time) / (deviation_ * std::sqrt(2.0))), groups_);
    }
    return sum / machines;
  }

  double groups_;
  double deviation_ = 0.0;
  std::vector<double> times_;  // by machine, sorted
};

}  // namespace

void StepSpread::add(const SiteRuns& site) {
  excess += static_cast<double>(site.runs) * site.excess;
  variance += static_cast<double>(site.runs) * site.deviation * site.deviation;
}

StepTail tail_of(const StepSpread& spread) {
  const Distribution times(spread);
  return {.mean = from_seconds(times.mean()),
          .p50 = from_seconds(times.quantile(0.5)),
          .p95 = from_seconds(times.quantile(0.95)),
          .p99 = from_seconds(times.quantile(0.99))};
}

double deviations_at_p99(std::int64_t groups) { return math::log(slowest_of(groups, 1.0, Probability{0.99})); }

}  // namespace commfuse
