// SPDX-License-Identifier: Apache-2.0
// Tests that attention of some query rows has the bits of the whole attention.
#include "validate/reference/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "model/strategies/scope.h"
#include "tests/validate/reference/matrices.h"
#include "validate/reference/collective.h"
#include "validate/values/random.h"

namespace commfuse::validate {
namespace {

using test::matrix;
using test::points_of;
using test::shared;

/// Two sequences, two query heads and one kv head of two elements.
constexpr AttentionLayout layout{.qkv = 8, .out = 4, .head = 2, .batch = 2, .causal = true};

Matrix<float> some_qkv(std::int64_t rows) {
  Random random(5);
  Matrix<float> qkv(rows, layout.qkv);
  for (float& value : qkv.values()) {
    value = static_cast<float>(random.integer(3));
  }
  return qkv;
}

TEST(AttentionRows, HaveTheBitsOfTheWhole) {
  const Matrix<float> qkv = some_qkv(12);
  for (const Functions functions : {Functions::real, Functions::integer}) {
    const Matrix<float> whole = attention(layout, functions, qkv);
    const std::array<std::int64_t, 4> at{2, 3, 10, 11};
    const std::array picked{rows_of(qkv, 2, 2), rows_of(qkv, 10, 2)};
    const Matrix<float> picked_rows_out = attention(layout, functions, stacked(picked), at, qkv);
    const std::array expected{rows_of(whole, 2, 2), rows_of(whole, 10, 2)};
    EXPECT_EQ(picked_rows_out, stacked(expected));
  }
}

TEST(AttentionRows, DoNotReadMaskedRows) {
  Matrix<float> qkv = some_qkv(12);
  const Matrix<float> whole = attention(layout, Functions::real, qkv);
  for (std::int64_t row = 4; row < 12; ++row) {
    std::ranges::fill(qkv.row(row), std::numeric_limits<float>::quiet_NaN());
  }
  const std::array<std::int64_t, 2> at{2, 3};
  EXPECT_EQ(attention(layout, Functions::real, rows_of(qkv, 2, 2), at, qkv), rows_of(whole, 2, 2));
}

TEST(AttentionRows, OnIntegersCountEveryQueryKeyAndValue) {
  // One head and no effective mask: (1 x 2) 3 + (1 x 1) 4 = 10, which is 0 modulo 5. With k = 3 instead of 2 the sum is
  // 13, with q = 2 as well it is 26, and with v = 3 instead of 4 it is 9.
  constexpr AttentionLayout one_head{.qkv = 3, .out = 1, .head = 1, .batch = 1, .causal = false};
  EXPECT_EQ(attention(one_head, Functions::integer, matrix({{1, 2, 3}, {1, 1, 4}})), matrix({{0}, {0}}));
  EXPECT_EQ(attention(one_head, Functions::integer, matrix({{1, 3, 3}, {2, 1, 4}})), matrix({{-2}, {1}}));
  EXPECT_EQ(attention(one_head, Functions::integer, matrix({{1, 2, 3}, {1, 1, 3}})), matrix({{-1}, {-1}}));
}

TEST(AttentionSpread, IsBoundedByTheValuesIfScoresAreUnknown) {
  // The bounds of q and k are so wide that every weight may be anything from 0 to 1.
  const Matrix<double> qkv(2, layout.qkv);
  Matrix<double> bound(2, layout.qkv);
  for (std::int64_t row = 0; row < bound.rows(); ++row) {
    std::ranges::fill(bound.row(row).first(6), 100.0);
    bound.row(row)[7] = 0.5;
  }
  const Matrix<double> spread = attention_spread(layout, qkv, bound);
  for (std::int64_t row = 0; row < spread.rows(); ++row) {
    EXPECT_EQ(spread.at(row, 0), 0.0);
    EXPECT_EQ(spread.at(row, 1), 0.5);
  }
}

TEST(Ulysses, IsBitwiseUnfusedWhereTheOutProjectionIsOneGemm) {
  const CheckedOperation ulysses{"ulysses", "ulysses", operation_of(Scope::ulysses, true)};
  for (const std::int32_t ranks : {1, 2, 3, 8}) {
    for (const CheckPoint& point : points_of(ulysses, ranks, DType::bf16)) {
      if (point.strategy->name != "commfuse" || ranks == 1) {  // commfuse adds up head groups
        const auto program = shared(program_of(point));
        const Tally tally = verify_bitwise(program, checked_sizes(*program)[1], 3);
        EXPECT_TRUE(tally.ok()) << program->name << ", " << tally.wrong << " wrong";
      }
    }
  }
}

TEST(Ulysses, HasTheBitsOfTheUnfusedHeadsAfterFuseAllToAll) {
  Operation heads = operation_of(Scope::ulysses, true);
  heads.stages.pop_back();
  const CheckedOperation first{"ulysses", "heads", heads};
  for (const std::int32_t ranks : {1, 2, 3, 8}) {
    for (const CheckPoint& point : points_of(first, ranks, DType::fp32)) {
      const auto program = shared(program_of(point));
      EXPECT_TRUE(verify_bitwise(program, checked_sizes(*program)[0], 3).ok()) << program->name;
    }
  }
}

}  // namespace
}  // namespace commfuse::validate
