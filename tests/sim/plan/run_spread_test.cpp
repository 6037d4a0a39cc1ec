// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/run_spread.h"

#include <gtest/gtest.h>

#include <cmath>

namespace commfuse {
namespace {

const RunTerms terms{.tokens = 1e12,
                     .tokens_per_second = 1e6,
                     .gpus = 512,
                     .price = 2.0,
                     .per_gpu_hour = 2e-5,
                     .checkpoint = Seconds{60.0},
                     .restart = Seconds{600.0}};

TEST(RunSpread, WithoutErrorsEveryDrawIsTheValue) {
  const RunSpread spread = RunDraws({}, {.seed = 1, .draws = 200}).spread_of(terms);
  const RunTotals totals = totals_of(terms);
  for (const Interval& interval : {spread.days, spread.cost, spread.goodput, spread.gpu_hours}) {
    EXPECT_EQ(interval.low, interval.value);
    EXPECT_EQ(interval.high, interval.value);
  }
  EXPECT_EQ(spread.days.value, totals.days);
  EXPECT_EQ(share_within(spread, {.days = totals.days}), 1.0);
  EXPECT_EQ(share_within(spread, {.days = 0.99 * totals.days}), 0.0);
}

TEST(RunSpread, TheIntervalOfALognormalIsItsQuantiles) {
  RunTerms without_failures = terms;
  without_failures.per_gpu_hour = 0.0;
  const RunSpread spread = RunDraws({.step = 0.1}, {.seed = 1, .draws = 20'000}).spread_of(without_failures);
  EXPECT_NEAR(spread.days.low / spread.days.value, std::exp(-0.1 * 1.6449), 0.004);
  EXPECT_NEAR(spread.days.high / spread.days.value, std::exp(0.1 * 1.6449), 0.004);
  EXPECT_NEAR(share_within(spread, {.days = spread.days.value}), 0.5, 0.015);
  EXPECT_NEAR(spread.tokens_per_second.low * spread.step_high, without_failures.tokens_per_second, 1e-3);
}

TEST(RunSpread, APriceErrorWidensCostAndNotDays) {
  const RunSpread spread = RunDraws({.price = 0.2}, {.seed = 1, .draws = 1000}).spread_of(terms);
  EXPECT_EQ(spread.days.low, spread.days.high);
  EXPECT_LT(spread.cost.low, 0.8 * spread.cost.value);
  EXPECT_GT(spread.cost.high, 1.2 * spread.cost.value);
}

TEST(RunSpread, IsReproducibleForASeed) {
  const RunErrors errors{.step = 0.1, .price = 0.1, .failures = 0.3};
  EXPECT_EQ(RunDraws(errors, {.seed = 7, .draws = 500}).spread_of(terms).all_costs,
            RunDraws(errors, {.seed = 7, .draws = 500}).spread_of(terms).all_costs);
  EXPECT_NE(RunDraws(errors, {.seed = 7, .draws = 500}).spread_of(terms).all_costs,
            RunDraws(errors, {.seed = 8, .draws = 500}).spread_of(terms).all_costs);
}

}  // namespace
}  // namespace commfuse
