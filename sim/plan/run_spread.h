// SPDX-License-Identifier: Apache-2.0
// Uncertainty of a run's totals, by Monte Carlo over three unknowns: the price, the time of a step and the rate of GPU
// failures. Each is lognormal around its value. Draws are counter-based, so all runs are compared under the same draws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "model/analysis/run_totals.h"
#include "model/random/quantile_table.h"
#include "model/record/capacity_plan.h"

namespace commfuse {

/// Standard errors of the logarithms of the three unknowns.
struct RunErrors {
  double step = 0.0;
  double price = 0.0;
  double failures = 0.0;
};

struct RunSpread {
  Interval goodput, tokens_per_second, days, gpu_hours, cost, cost_per_mtok, energy_kwh;
  double step_low = 1.0, step_high = 1.0;  ///< Interval of the time of a step, as factors on its value.
  std::vector<double> all_days;            ///< One value per draw.
  std::vector<double> all_costs;           ///< One value per draw, in the order of `all_days`.
};

class RunDraws {
 public:
  struct Sampling {
    std::uint64_t seed = 0;
    std::size_t draws = 1;
  };
  RunDraws(const RunErrors& errors, const Sampling& sampling);

  /// Returns the totals for the given terms; the ends of the intervals are the order statistics at 5% and 95% of the
  /// draws.
  [[nodiscard]] RunSpread spread_of(const RunTerms& terms) const;

 private:
  std::uint64_t seed_;
  std::size_t draws_;
  QuantileTable step_;
  QuantileTable price_;
  QuantileTable failures_;
};

/// Upper limits on a run's days and cost.
struct RunLimits {
  double days = std::numeric_limits<double>::infinity();
  double cost = std::numeric_limits<double>::infinity();
};

/// Returns the share of draws within both limits. Requires `spread` to have draws.
double share_within(const RunSpread& spread, const RunLimits& limits);

}  // namespace commfuse
