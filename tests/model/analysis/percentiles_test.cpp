// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/percentiles.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <random>

namespace commfuse {
namespace {

using namespace std::chrono_literals;

/// Returns 1 us, 2 us ... count us.
std::vector<Duration> one_to(std::size_t count) {
  std::vector<Duration> samples;
  for (std::size_t i = 1; i <= count; ++i) {
    samples.emplace_back(std::chrono::microseconds(i));
  }
  return samples;
}

Estimate known(Duration value, Duration low, Duration high) { return {value, TimeRange{low, high}}; }

TEST(Percentiles, APercentileIsTheLeastSampleThatReachesIt) {
  EXPECT_EQ(order_of(20, 950), 19U);
  EXPECT_EQ(order_of(20, 951), 20U);
  EXPECT_EQ(order_of(1000, 999), 999U);
  EXPECT_EQ(order_of(10'000, 999), 9990U);
  EXPECT_EQ(order_of(7, 500), 4U);
  EXPECT_EQ(order_of(8, 500), 4U);
  EXPECT_EQ(order_of(1, 1), 1U);
  EXPECT_EQ(order_of(1, 1000), 1U);
}

// At most 1 of 10 samples lies below the median with probability 11/1024 = 1.1%, and at most 2 with 56/1024 = 5.5%. So
// the 2nd smallest sample exceeds the median with probability 1.1%, within the permitted 2.5%, and the 3rd smallest
// with 5.5%, which is too much. The largest samples are symmetric.
TEST(Percentiles, TheMedianOfTenLiesBetweenTheSecondAndTheNinth) {
  EXPECT_EQ(percentile(one_to(10), 500), known(5us, 2us, 9us));
}

// All n samples lie below the median with probability 2^-n: 3.1% for 5 samples exceeds 2.5%, and 1.6% for 6 does not.
TEST(Percentiles, SixSamplesLocateTheMedianButFiveDoNot) {
  EXPECT_EQ(percentile(one_to(5), 500), (Estimate{3us, std::nullopt}));
  EXPECT_EQ(percentile(one_to(6), 500), known(3us, 1us, 6us));
}

// All samples lie below p99 with probability 0.99^n, which is 2.5% at n = 367.04; for p99.9 at n = 3687.04.
TEST(Percentiles, HighPercentilesHaveARangeOnlyWithSamplesBeyondThem) {
  EXPECT_FALSE(percentile(one_to(367), 990).range.has_value());
  EXPECT_TRUE(percentile(one_to(368), 990).range.has_value());
  EXPECT_FALSE(percentile(one_to(1000), 999).range.has_value());
  EXPECT_FALSE(percentile(one_to(3687), 999).range.has_value());
  EXPECT_TRUE(percentile(one_to(3688), 999).range.has_value());
  EXPECT_EQ(percentile(one_to(1000), 999).value, Duration{999us});
}

TEST(Percentiles, NoSampleLimitsTheLargestValue) {
  EXPECT_EQ(percentile(one_to(5000), 1000), (Estimate{5000us, std::nullopt}));
}

// Derives the ends independently, by summing binomial probabilities.
TEST(Percentiles, RangesEndAtTheNearestSamplesThatCoverNinetyFivePercent) {
  for (const std::size_t count : {400U, 1000U, 5000U}) {
    for (const int per_mille : {500, 950, 990}) {
      const double p = per_mille / 1000.0;
      const auto n = static_cast<double>(count);
      std::size_t low = 0;
      std::size_t high = count + 1;
      double below = 0.0;
      for (std::size_t k = 0; k <= count; ++k) {
        const auto x = static_cast<double>(k);
        below += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) + x * std::log(p) +
                          (n - x) * std::log1p(-p));
        if (below <= 0.025) {
          low = k + 1;
        } else if (below >= 0.975 && high > count) {
          high = k + 1;
        }
      }
      const Estimate estimate = percentile(one_to(count), per_mille);
      ASSERT_TRUE(estimate.range.has_value());
      EXPECT_EQ(estimate.range->low, Duration(std::chrono::microseconds(low))) << count << " " << per_mille;
      EXPECT_EQ(estimate.range->high, Duration(std::chrono::microseconds(high))) << count << " " << per_mille;
    }
  }
}

TEST(Percentiles, RangesCoverTheTrueValueIn95PercentOfTrials) {
  std::mt19937_64 random(7);
  int covered = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<Duration> samples;
    for (int i = 0; i < 500; ++i) {
      samples.emplace_back(static_cast<std::int64_t>(random() % 1'000'000));
    }
    std::sort(samples.begin(), samples.end());
    const Estimate estimate = percentile(samples, 950);
    covered += estimate.range->low <= Duration{950'000} && Duration{950'000} <= estimate.range->high ? 1 : 0;
  }
  EXPECT_GE(covered, 1900);  // at least 95%; the ends are samples, so the share is slightly higher
  EXPECT_LE(covered, 1960);
}

// Mean 6, s = 2 sqrt(10/3) = 3.651, t(3; 0.975) = 3.18245: 6 +- 3.18245 x 3.651 / 2.
TEST(Percentiles, TheMeanHasStudentsRange) {
  const std::vector<Duration> samples{2us, 4us, 8us, 10us};
  const Estimate estimate = mean(samples);
  EXPECT_EQ(estimate.value, Duration{6us});
  EXPECT_NEAR(to_microseconds(estimate.range->low), 6 - 3.182446 * 3.651484 / 2, 1e-5);
  EXPECT_NEAR(to_microseconds(estimate.range->high), 6 + 3.182446 * 3.651484 / 2, 1e-5);
}

TEST(Percentiles, OneSampleIsEveryPercentileWithoutARange) {
  const Percentiles percentiles = percentiles_of({5us});
  EXPECT_EQ(percentiles.samples, 1U);
  for (const Estimate& estimate :
       {percentiles.mean, percentiles.p50, percentiles.p95, percentiles.p99, percentiles.p99_9}) {
    EXPECT_EQ(estimate, (Estimate{5us, std::nullopt}));
  }
}

TEST(Percentiles, TheOrderOfSamplesDoesNotMatter) {
  std::vector<Duration> samples = one_to(10'000);
  const Percentiles sorted = percentiles_of(samples);
  std::shuffle(samples.begin(), samples.end(), std::mt19937_64(3));
  const Percentiles shuffled = percentiles_of(samples);
  EXPECT_EQ(sorted.p50, shuffled.p50);
  EXPECT_EQ(sorted.p99_9, shuffled.p99_9);
  EXPECT_EQ(sorted.mean, shuffled.mean);
  EXPECT_EQ(sorted.mean.value, Duration{5000500ns});
  EXPECT_EQ(sorted.p99_9.value, Duration{9990us});
}

TEST(Percentiles, EqualSamplesHaveNoWidth) {
  const Percentiles percentiles = percentiles_of(std::vector<Duration>(5000, 7us));
  EXPECT_EQ(percentiles.mean, known(7us, 7us, 7us));
  EXPECT_EQ(percentiles.p99, known(7us, 7us, 7us));
}

}  // namespace
}  // namespace commfuse
