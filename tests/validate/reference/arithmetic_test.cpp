// SPDX-License-Identifier: Apache-2.0
#include "validate/values/arithmetic.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "tests/validate/reference/matrices.h"
#include "validate/reference/collective.h"
#include "validate/values/random.h"

namespace commfuse::validate {
namespace {

using test::matrix;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

Matrix<float> random_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  Random random(seed);
  Matrix<float> result(rows, columns);
  for (float& value : result.values()) {
    value = random.uniform();
  }
  return result;
}

TEST(Product, MatchesAWorkedExample) {
  EXPECT_EQ(product(matrix({{1, 2, 3}, {4, 5, 6}}), matrix({{1, 0}, {0, 1}, {2, 2}})), matrix({{7, 8}, {16, 17}}));
}

TEST(Product, SumsInAscendingOrderOfK) {
  // 1e8 + 1 is 1e8 in fp32. The other order leaves 1.
  EXPECT_EQ(product(matrix({{1e8F, 1, -1e8F}}), matrix({{1}, {1}, {1}})), matrix({{0}}));
  EXPECT_EQ(product(matrix({{1e8F, -1e8F, 1}}), matrix({{1}, {1}, {1}})), matrix({{1}}));
}

TEST(Product, ABlockOfRowsHasTheBitsOfTheWholeGemm) {
  const Matrix<float> a = random_matrix(12, 40, 1);
  const Matrix<float> b = random_matrix(40, 9, 2);
  EXPECT_EQ(rows_of(product(a, b), 5, 4), product(rows_of(a, 5, 4), b));
}

TEST(Product, ZeroDoesNotHideNan) { EXPECT_TRUE(std::isnan(product(matrix({{0}}), matrix({{nan}})).at(0, 0))); }

TEST(Sum, AddsItsTermsInOrder) {
  const std::array up{matrix({{1e8F}}), matrix({{1}}), matrix({{-1e8F}})};
  const std::array down{matrix({{1e8F}}), matrix({{-1e8F}}), matrix({{1}})};
  EXPECT_EQ(sum(up), matrix({{0}}));
  EXPECT_EQ(sum(down), matrix({{1}}));
}

TEST(Functions, SwigluPairsBlocksOfColumns) {
  // Blocks of two columns: gate, up, gate, up. The integer stand-in is relu(gate) * up, clipped to [-2, 2].
  const Matrix<float> in = matrix({{1, -1, 2, 5, 1, 1, -1, 9}});
  EXPECT_EQ(apply(Function::swiglu, Functions::integer, 2, in), matrix({{2, 0, -1, 2}}));
}

TEST(Functions, RealValuesAgreeWithTheirTables) {
  EXPECT_EQ(apply(Function::swiglu, Functions::real, 1, matrix({{0, 7}})), matrix({{0}}));
  EXPECT_FLOAT_EQ(apply(Function::swiglu, Functions::real, 1, matrix({{1, 3}})).at(0, 0), 3 * 0.73105858F);
  EXPECT_FLOAT_EQ(apply(Function::gelu, Functions::real, 1, matrix({{1}})).at(0, 0), 0.84134475F);
  EXPECT_FLOAT_EQ(apply(Function::gelu, Functions::real, 1, matrix({{-1}})).at(0, 0), -0.15865525F);
}

TEST(Functions, StandInsKeepNan) {
  EXPECT_TRUE(std::isnan(apply(Function::swiglu, Functions::integer, 1, matrix({{nan, 1}})).at(0, 0)));
  EXPECT_TRUE(std::isnan(apply(Function::swiglu, Functions::integer, 1, matrix({{1, nan}})).at(0, 0)));
  EXPECT_TRUE(std::isnan(apply(Function::gelu, Functions::integer, 1, matrix({{nan}})).at(0, 0)));
}

TEST(Functions, NoSlopeIsSteeperThanTheOneInTheBound) {
  double silu_slope = 0.0;
  double gelu_slope = 0.0;
  constexpr double step = 1e-3;
  for (int i = -20'000; i < 20'000; ++i) {
    const double x = i * step;
    silu_slope = std::max(silu_slope, std::abs(silu(x + step) - silu(x)) / step);
    gelu_slope = std::max(gelu_slope, std::abs(gelu(x + step) - gelu(x)) / step);
  }
  EXPECT_LE(silu_slope, steepest_silu);
  EXPECT_GT(silu_slope, steepest_silu - 0.001);
  EXPECT_LE(gelu_slope, steepest_gelu);
  EXPECT_GT(gelu_slope, steepest_gelu - 0.002);
}

TEST(Random, IsSplitMix64) {
  Random random(0);
  EXPECT_EQ(random.next(), 0xe220a8397b1dcdafU);
  EXPECT_EQ(random.next(), 0x6e789e6aa1b965f4U);
}

TEST(Random, StaysInItsRange) {
  Random random(3);
  float least = 0.0F;
  float largest = 0.0F;
  for (int i = 0; i < 10'000; ++i) {
    const float value = random.uniform();
    least = std::min(least, value);
    largest = std::max(largest, value);
    const std::int64_t whole = random.integer(2);
    ASSERT_TRUE(whole >= -2 && whole <= 2);
  }
  EXPECT_GE(least, -1.0F);
  EXPECT_LT(least, -0.99F);
  EXPECT_LT(largest, 1.0F);
  EXPECT_GT(largest, 0.99F);
}

}  // namespace
}  // namespace commfuse::validate
