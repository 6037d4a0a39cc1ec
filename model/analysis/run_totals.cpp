// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/run_totals.h"

#include <algorithm>
#include <cmath>

#include "model/check.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

constexpr double hour = 3600.0;
constexpr double day = 86400.0;

/// Returns the share of wall time that is work, for a run with failures.
double goodput_of(Seconds every, Seconds checkpoint, Seconds restart, Seconds between_failures) {
  const double m = between_failures.count();
  return every.count() / (m * math::exp(restart.count() / m) * math::expm1((every + checkpoint).count() / m));
}

}  // namespace

Seconds checkpoint_interval(const CheckpointTimes& times) {
  const auto [checkpoint, between_failures] = times;
  const double d = checkpoint.count();
  const double m = between_failures.count();
  check(m > 0.0, "the mean time between failures is positive");
  if (d >= 2.0 * m) {
    return between_failures;
  }
  const double share = d / (2.0 * m);
  return Seconds{std::sqrt(2.0 * d * m) * (1.0 + std::sqrt(share) / 3.0 + share / 9.0) - d};
}

RunTotals totals_of(const RunTerms& terms) {
  check(terms.tokens_per_second > 0.0, "a run makes progress");
  RunTotals totals;
  const double failures_per_second = terms.gpus * terms.per_gpu_hour / hour;
  if (failures_per_second > 0.0) {
    const Seconds between{1.0 / failures_per_second};
    // If checkpoints are free, the best interval is 0; one second is close enough.
    totals.checkpoint_every =
        std::max(Seconds{1.0}, checkpoint_interval({.checkpoint = terms.checkpoint, .between_failures = between}));
    totals.goodput = goodput_of(totals.checkpoint_every, terms.checkpoint, terms.restart, between);
  }
  const double seconds = terms.tokens / (terms.tokens_per_second * totals.goodput);
  totals.failures = seconds * failures_per_second;
  totals.days = seconds / day;
  totals.gpu_hours = terms.gpus * seconds / hour;
  totals.energy_kwh = terms.gpus * terms.power.value / 1e3 * terms.pue * seconds / hour;
  totals.cost = totals.gpu_hours * terms.price + totals.energy_kwh * terms.energy_price;
  totals.cost_per_mtok = totals.cost / terms.tokens * 1e6;
  return totals;
}

}  // namespace commfuse
