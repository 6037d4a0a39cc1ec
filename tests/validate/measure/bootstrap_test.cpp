// SPDX-License-Identifier: Apache-2.0
// Tests the probability that one schedule is faster than another.
#include "validate/measure/bootstrap.h"

#include <gtest/gtest.h>

#include <vector>

#include "validate/values/random.h"

namespace commfuse::validate {
namespace {

using namespace std::chrono_literals;
using Durations = std::vector<Duration>;

/// Returns times that grow from round to round, with one outlier, all multiplied by `parts`.
Durations drifting(int parts) {
  Durations times;
  for (int round = 0; round < 20; ++round) {
    times.push_back((round == 13 ? 9000 : 100 + round) * parts * 1us);
  }
  return times;
}

TEST(Bootstrap, TimesWithoutSpreadHaveARatioWithoutSpread) {
  const Ratio ratio = ratio_of_medians(Durations(5, 3ms), Durations(7, 2ms), 1);
  EXPECT_DOUBLE_EQ(ratio.value, 1.5);
  EXPECT_DOUBLE_EQ(ratio.low, 1.5);
  EXPECT_DOUBLE_EQ(ratio.high, 1.5);
}

TEST(Bootstrap, ADisturbedRoundDoesNotChangeTheRatio) {
  const Ratio paired = ratio_of_medians(drifting(11), drifting(10), 1);
  EXPECT_NEAR(paired.value, 1.1, 1e-12);
  EXPECT_NEAR(paired.low, 1.1, 1e-12);
  EXPECT_NEAR(paired.high, 1.1, 1e-12);
  Durations one_less = drifting(10);
  one_less.pop_back();
  const Ratio unpaired = ratio_of_medians(drifting(11), one_less, 1);
  EXPECT_LT(unpaired.low, 1.07);
  EXPECT_GT(unpaired.high, 1.13);
}

TEST(Bootstrap, TheSameSeedGivesTheSameInterval) {
  Durations shuffled = drifting(10);
  std::swap(shuffled[2], shuffled[17]);
  const auto interval = [&](std::uint64_t seed) {
    const Ratio ratio = ratio_of_medians(drifting(11), shuffled, seed);
    return std::pair{ratio.low, ratio.high};
  };
  EXPECT_EQ(interval(3), interval(3));
}

TEST(Bootstrap, TheIntervalContainsTheTrueRatioInAbout95PercentOfTrials) {
  Random random(7);
  const auto draw = [&] { return 1ms + Duration(static_cast<std::int64_t>(random.next() % 400'000'000U)); };
  constexpr int trials = 120;
  int hits = 0;
  for (int trial = 0; trial < trials; ++trial) {
    Durations times;
    Durations base;
    for (int round = 0; round < 25; ++round) {
      times.push_back(draw());
      base.push_back(draw());
    }
    const Ratio ratio = ratio_of_medians(times, base, 1);
    EXPECT_LE(ratio.low, ratio.value);
    EXPECT_GE(ratio.high, ratio.value);
    hits += ratio.low <= 1.0 && 1.0 <= ratio.high ? 1 : 0;
  }
  EXPECT_GE(hits, trials * 88 / 100);
  EXPECT_LT(hits, trials);
}

}  // namespace
}  // namespace commfuse::validate
