// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/run_totals.h"

#include <gtest/gtest.h>

#include <cmath>

namespace commfuse {
namespace {

TEST(RunTotals, WithoutFailuresEveryTotalIsARatio) {
  const RunTotals totals = totals_of({.tokens = 86'400e6,
                                      .tokens_per_second = 1e6,
                                      .gpus = 16,
                                      .price = 2.0,
                                      .power = Watts{500.0},
                                      .pue = 1.25,
                                      .energy_price = 0.1});
  EXPECT_EQ(totals.goodput, 1.0);
  EXPECT_EQ(totals.days, 1.0);
  EXPECT_EQ(totals.gpu_hours, 16.0 * 24.0);
  EXPECT_EQ(totals.energy_kwh, 16 * 0.5 * 1.25 * 24);
  EXPECT_DOUBLE_EQ(totals.cost, 384.0 * 2.0 + 240.0 * 0.1);
  EXPECT_DOUBLE_EQ(totals.cost_per_mtok, 792.0 / 86'400.0);
  EXPECT_EQ(totals.failures, 0.0);
}

TEST(RunTotals, TheCheckpointIntervalIsYoungsWhereCheckpointsAreShort) {
  // Writing takes d = 1 s and failures are M = 500,000 s apart. Young (1974): sqrt(2 d M) = 1000 s. Daly (2006) adds
  // d / 3 and subtracts d, to first order.
  EXPECT_NEAR(checkpoint_interval({Seconds{1.0}, Seconds{500'000.0}}).count(), 1000.0 + 1.0 / 3.0 - 1.0, 1e-3);
  EXPECT_EQ(checkpoint_interval({Seconds{100.0}, Seconds{50.0}}).count(), 50.0);
}

TEST(RunTotals, NoOtherCheckpointIntervalLosesLessByMoreThanAThousandth) {
  const RunTerms terms{.tokens = 1.0,
                       .tokens_per_second = 1.0,
                       .gpus = 16'384,
                       .per_gpu_hour = 2e-5,
                       .checkpoint = Seconds{60.0},
                       .restart = Seconds{600.0}};
  const RunTotals best = totals_of(terms);
  const double m = 3600.0 / (16'384 * 2e-5);
  const auto goodput = [&](double interval) {
    return interval / (m * std::exp(600.0 / m) * std::expm1((interval + 60.0) / m));
  };
  EXPECT_DOUBLE_EQ(best.goodput, goodput(best.checkpoint_every.count()));
  for (int step = 0; step <= 50; ++step) {
    const double interval = 60.0 * std::pow(1.1, step);
    EXPECT_LE(goodput(interval), best.goodput * 1.001) << interval;
  }
  EXPECT_NEAR(best.goodput, 1.0 - std::sqrt(2.0 * 60.0 / m) - 600.0 / m, 0.015);  // Young's first-order formula
}

TEST(RunTotals, MoreFailuresAndLongerCheckpointsTakeLonger) {
  RunTerms terms{.tokens = 1e12,
                 .tokens_per_second = 1e6,
                 .gpus = 1024,
                 .per_gpu_hour = 2e-5,
                 .checkpoint = Seconds{30.0},
                 .restart = Seconds{300.0}};
  const double days = totals_of(terms).days;
  terms.per_gpu_hour *= 2.0;
  const double more_failures = totals_of(terms).days;
  terms.checkpoint *= 2.0;
  EXPECT_GT(more_failures, days);
  EXPECT_GT(totals_of(terms).days, more_failures);
}

}  // namespace
}  // namespace commfuse
