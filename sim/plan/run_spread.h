// SPDX-License-Identifier: Apache-2.0
// How far a run's totals stray, by Monte Carlo over what nobody knows exactly: the step's time, the price, how often
// GPUs fail. Each is lognormal around its value; draws are counter-based, so runs are compared under common ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/analysis/run_totals.h"
#include "model/random/quantile_table.h"
#include "model/record/capacity_plan.h"

namespace commfuse {

/// Standard errors of logarithms.
struct RunErrors {
  double step = 0.0;
  double price = 0.0;
  double failures = 0.0;
};

struct RunSpread {
  Interval goodput, tokens_per_second, days, gpu_hours, cost, cost_per_mtok, energy_kwh;
  double step_low = 1.0, step_high = 1.0;  ///< Of the step's time, times its value.
  std::vector<double> all_days;            ///< One a draw, with the cost of the same draw.
  std::vector<double> all_costs;
};

class RunDraws {
 public:
  RunDraws(const RunErrors& errors, std::uint64_t seed, std::size_t draws);

  /// Values are those of the terms as they are; ends are the order statistics at 5 and 95 % of the draws.
  [[nodiscard]] RunSpread spread_of(const RunTerms& terms) const;

 private:
  std::uint64_t seed_;
  std::size_t draws_;
  QuantileTable step_;
  QuantileTable price_;
  QuantileTable failures_;
};

/// The share of draws that keep both. Requires a spread with draws.
double share_that_keeps(const RunSpread& spread, double most_days, double most_cost);

}  // namespace commfuse
