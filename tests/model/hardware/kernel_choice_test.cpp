// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/kernel_choice.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace commfuse {
namespace {

constexpr std::size_t factors_per_m = KernelChoice::tiles_knots.size() * KernelChoice::k_knots.size();

TEST(KernelChoice, Log2IsExactAtPowersOfTwoAndLinearBetween) {
  EXPECT_EQ(KernelChoice::log2_in_steps(1.0), 0.0);
  EXPECT_EQ(KernelChoice::log2_in_steps(0.125), -3.0);
  EXPECT_EQ(KernelChoice::log2_in_steps(65536.0), 16.0);
  EXPECT_EQ(KernelChoice::log2_in_steps(96.0), 6.5);  // halfway from 64 to 128
  EXPECT_EQ(KernelChoice::log2_in_steps(1.25), 0.25);
}

TEST(KernelChoice, AKnotHasItsOwnFactor) {
  KernelChoice choice;
  choice.factors[factors_per_m + 5 * KernelChoice::k_knots.size() + 3] = 1.5;  // m = 64, one tile per SM, k = 1024
  EXPECT_EQ(choice.factor({1.0, 1024, 64}), 1.5);
  EXPECT_EQ(choice.factor({2.0, 1024, 64}), 1.0);
  EXPECT_EQ(choice.factor({1.0, 2048, 64}), 1.0);
  EXPECT_EQ(choice.factor({1.0, 1024, 16}), 1.0);
}

TEST(KernelChoice, InterpolatesInTheLogarithmOfEachSize) {
  KernelChoice choice;
  choice.factors[factors_per_m + 5 * KernelChoice::k_knots.size() + 3] = 1.5;
  EXPECT_EQ(choice.factor({1.0, 1536, 64}), 1.25);    // halfway from 1,024 to 2,048
  EXPECT_EQ(choice.factor({1.0, 1024, 32}), 1.25);    // halfway from 16 to 64
  EXPECT_EQ(choice.factor({1.5, 1536, 32}), 1.0625);  // halfway on all three
}

TEST(KernelChoice, NarrowGemmsHaveAFurtherFactor) {
  KernelChoice choice;
  choice.factors.fill(2.0);
  choice.narrow[(1 * 2 + 1) * KernelChoice::k_knots.size() + 3] = 1.5;  // m = 64, n = 64, k = 1024
  const auto factor_of = [&](std::int64_t n, std::int64_t k) {
    return choice.factor({.tiles_per_sm = 1.0, .k = k, .m = 64, .n = n});
  };
  EXPECT_EQ(factor_of(64, 1024), 3.0);
  EXPECT_EQ(factor_of(64, 1536), 2.5);  // halfway from 1,024 to 2,048
  EXPECT_EQ(factor_of(96, 1024), 2.5);  // halfway from 64 to 128, which has no further factor
  EXPECT_EQ(factor_of(48, 1024), 2.5);
  EXPECT_EQ(factor_of(32, 1024), 2.0);
  EXPECT_EQ(factor_of(128, 1024), 2.0);
  choice.narrow.front() = 0.5;
  EXPECT_EQ(choice.factor({.tiles_per_sm = 1.0, .k = 1, .m = 1, .n = 1}), 1.0);
}

TEST(KernelChoice, SizesBeyondTheGridCountAsItsEdge) {
  KernelChoice choice;
  choice.factors.front() = 0.5;
  choice.factors.back() = 2.0;
  EXPECT_EQ(choice.factor({1.0 / 1024, 1, 1}), 0.5);
  EXPECT_EQ(choice.factor({1000.0, 1'000'000, 1'000'000}), 2.0);
}

TEST(KernelChoice, WeightsAreSharesOfOne) {
  KernelChoice choice;
  for (std::size_t i = 0; i < KernelChoice::size; ++i) {
    choice.factors[i] = 0.8 + 0.001 * static_cast<double>(i);
  }
  for (const double tiles : {0.001, 0.01, 0.3, 0.75, 1.0, 7.3, 100.0}) {
    for (const std::int64_t k : {1, 48, 1000, 5120, 100'000}) {
      for (const std::int64_t m : {1, 17, 63, 300, 5000}) {
        double sum = 0.0;
        double factor = 0.0;
        for (const KernelChoice::Corner& corner : KernelChoice::corners({tiles, k, m})) {
          EXPECT_LT(corner.knot, KernelChoice::size);
          EXPECT_GE(corner.weight, 0.0);
          sum += corner.weight;
          factor += corner.weight * choice.factors[corner.knot];
        }
        EXPECT_NEAR(choice.factor({tiles, k, m}), factor, 1e-14) << tiles << " " << k << " " << m;
        EXPECT_NEAR(sum, 1.0, 1e-15) << tiles << " " << k << " " << m;
      }
    }
  }
}

TEST(KernelChoice, KeysNameTheSizes) {
  EXPECT_EQ(m_key(9), "m_512");
  EXPECT_EQ(n_key(6), "n_64");
  EXPECT_EQ(tiles_key(-7), "1/128");
  EXPECT_EQ(tiles_key(0), "1");
  EXPECT_EQ(tiles_key(5), "32");
}

}  // namespace
}  // namespace commfuse
