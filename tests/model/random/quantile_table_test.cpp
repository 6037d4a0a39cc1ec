// SPDX-License-Identifier: Apache-2.0
#include "model/random/quantile_table.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

namespace commfuse {
namespace {

constexpr std::uint64_t all_words = std::uint64_t{1} << 32;

/// Known quantiles of the standard normal distribution: the probability of a larger value, and the value.
struct NormalQuantile {
  double above;
  double z;
};
constexpr std::array normal_quantiles{NormalQuantile{0.25, 0.6744897501960817}, NormalQuantile{0.1, 1.281551565544600},
                                      NormalQuantile{0.05, 1.644853626951473},  NormalQuantile{0.01, 2.326347874040841},
                                      NormalQuantile{1e-3, 3.090232306167814},  NormalQuantile{1e-4, 3.719016485455681},
                                      NormalQuantile{1e-5, 4.264890793922825},  NormalQuantile{1e-6, 4.753424308822899},
                                      NormalQuantile{1e-7, 5.199337582192817}};

/// Returns the word that has the probability `above` above it, in the middle of the word's share.
std::uint32_t word_with(double above) {
  return static_cast<std::uint32_t>((1.0 - above) * static_cast<double>(all_words) - 0.5);
}

/// Returns the mean of `function` over every 1024th word.
template <class Function>
double mean_over_words(const Function& function) {
  constexpr std::uint64_t stride = 1024;
  constexpr std::uint64_t words = all_words / stride;
  double sum = 0.0;
  for (std::uint64_t word = stride / 2; word < all_words; word += stride) {
    sum += function(static_cast<std::uint32_t>(word));
  }
  return sum / static_cast<double>(words);
}

TEST(QuantileTable, ALognormalHasTheRightQuantilesFarIntoBothTails) {
  for (const double sigma : {0.01, 0.2, 1.0}) {
    const QuantileTable table(lognormal(sigma), all_words);
    for (const auto& [above, z] : normal_quantiles) {
      // A word is a rounded probability: at 1e-7 the probability is off by up to 1/1000 of itself, and z by 2e-4.
      const double tolerance = 1e-4 + 1.5 / (above * static_cast<double>(all_words) * z);
      EXPECT_NEAR(std::log(table.at(word_with(above))) / sigma, z, tolerance) << sigma << " " << above;
      EXPECT_NEAR(std::log(table.at(~word_with(above))) / sigma, -z, tolerance) << sigma << " " << above;
    }
  }
}

TEST(QuantileTable, TheQuantileItselfIsAsPreciseAsADouble) {
  for (const auto& [above, z] : normal_quantiles) {
    EXPECT_NEAR(std::log(lognormal(1.0)(above, true)), z, 1e-14) << above;
    EXPECT_NEAR(std::log(lognormal(1.0)(above, false)), -z, 1e-14) << above;
    EXPECT_NEAR(std::log(lognormal(1.0)(1.0 - above, false)), z, 1e-15 / above) << above;
  }
  EXPECT_EQ(lognormal(1.0)(0.5, true), 1.0);
}

TEST(QuantileTable, TheOutermostWordsHaveTheirExactQuantiles) {
  const QuantileTable table(lognormal(1.0), all_words);
  EXPECT_NEAR(std::log(table.at(0)), -6.337957, 1e-4);  // probability 2^-33
  EXPECT_NEAR(std::log(table.at(0xffffffff)), 6.337957, 1e-4);
  EXPECT_NEAR(std::log(table.at(0xfffffffe)), 6.1663, 1e-3);  // 3 x 2^-33
}

TEST(QuantileTable, ALognormalHasMedianOneAndTheMeanAndSpreadOfTheory) {
  for (const double sigma : {0.01, 0.1, 0.5}) {
    const QuantileTable table(lognormal(sigma), all_words);
    EXPECT_NEAR(table.at(0x7fffffff), 1.0, 1e-9);
    EXPECT_NEAR(table.at(0x80000000), 1.0, 1e-9);
    const double mean = mean_over_words([&](std::uint32_t word) { return table.at(word); });
    const double square = mean_over_words([&](std::uint32_t word) { return table.at(word) * table.at(word); });
    const double variance = std::expm1(sigma * sigma) * std::exp(sigma * sigma);
    EXPECT_NEAR(mean, std::exp(sigma * sigma / 2), 1e-4 * sigma);
    EXPECT_NEAR(std::sqrt(square - mean * mean), std::sqrt(variance), 1e-3 * sigma);
  }
}

TEST(QuantileTable, RisesFromWordToWord) {
  const QuantileTable table(lognormal(0.3), all_words);
  double before = 0.0;
  for (std::uint64_t word = 0; word < all_words; word += 65521) {
    const double quantile = table.at(static_cast<std::uint32_t>(word));
    EXPECT_GE(quantile, before) << word;
    before = quantile;
  }
}

TEST(QuantileTable, ZeroSigmaGivesExactlyOne) {
  const QuantileTable table(lognormal(0.0), all_words);
  for (const std::uint32_t word : {0U, 1U, 77U, 0x7fffffffU, 0x80000000U, 0xffffffffU}) {
    EXPECT_EQ(table.at(word), 1.0);
  }
}

TEST(QuantileTable, AParetoTailFallsWithItsShape) {
  const QuantileTable table(pareto({.scale = 5e6, .shape = 2.5}), 4294967);
  EXPECT_NEAR(table.at(0), 5e6, 1e3);
  for (const double above : {0.5, 0.1, 1e-3, 1e-5}) {
    const auto word = static_cast<std::uint32_t>((1.0 - above) * 4294967 - 0.5);
    const double exact = 5e6 * std::pow((4294967 - (word + 0.5)) / 4294967, -1 / 2.5);
    EXPECT_NEAR(table.at(word) / exact, 1.0, 2e-4) << above;
  }
}

TEST(QuantileTable, ASampleIsDrawnEvenlyAndNeverExceeded) {
  const std::array<double, 4> sample{1.0, 1.1, 1.3, 2.0};
  const QuantileTable table(empirical(sample), all_words);
  EXPECT_EQ(table.at(0), 1.0);
  EXPECT_EQ(table.at(0xffffffff), 2.0);
  EXPECT_NEAR(table.at(word_with(1.0 - 0.375)), 1.1, 1e-6);  // the second of four samples is at 3/8
  EXPECT_NEAR(table.at(0x7fffffff), 1.2, 1e-6);              // halfway to the third sample
  // 1/8 of the words have 1.0, 1/8 have 2.0, and lines join the samples: (1 + 2)/8 + (1.05 + 1.2 + 1.65)/4.
  EXPECT_NEAR(mean_over_words([&](std::uint32_t word) { return table.at(word); }), 0.375 + 3.9 / 4, 2e-4);
}

TEST(QuantileTable, WordsBeyondTheCountHaveTheGivenValue) {
  const std::uint64_t count = all_words - 4294967;
  const QuantileTable table(lognormal(0.3), count, 1.0);
  EXPECT_EQ(table.at(static_cast<std::uint32_t>(count)), 1.0);
  EXPECT_EQ(table.at(0xffffffff), 1.0);
  EXPECT_EQ(table.at(0xfffff000), 1.0);
  EXPECT_LT(table.at(0), 0.2);
  EXPECT_GT(table.at(static_cast<std::uint32_t>(count - 1)), 5.0);
}

}  // namespace
}  // namespace commfuse
