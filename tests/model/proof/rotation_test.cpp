// SPDX-License-Identifier: Apache-2.0
#include "model/proof/rotation.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "model/proof/sums.h"
#include "tests/model/program/small_meshes.h"

namespace commfuse {
namespace {

using test::four;
using test::two_by_three;

/// Returns the positions of blocks 0, 1, 2 and so on after a rotation.
std::vector<std::int32_t> positions_after(const Mesh& mesh, const Direction& direction, const Turn& turn) {
  std::vector<std::int32_t> positions;
  for (std::int32_t block = 0; block < direction.blocks; ++block) {
    positions.push_back(direction.rotation.at(mesh, block, turn));
  }
  return positions;
}

TEST(Rotation, MovesShardsToTheNextRank) {
  EXPECT_EQ(positions_after(four, {4, {{1}}}, {1}), (std::vector{1, 2, 3, 0}));
  EXPECT_EQ(positions_after(four, {8, {{2}}}, {1}), (std::vector{2, 3, 4, 5, 6, 7, 0, 1}));
  EXPECT_EQ(positions_after(four, {4, {{1}}}, {3}), (std::vector{3, 0, 1, 2}));
}

TEST(Rotation, MovesBackwardsWhereTheStepIsNegative) {
  EXPECT_EQ(positions_after(four, {4, {{-1}}}, {1}), (std::vector{3, 0, 1, 2}));
}

TEST(Rotation, RotatesEachPeriodSeparately) {
  EXPECT_EQ(positions_after(four, {8, {{1}}}, {1}), (std::vector{1, 2, 3, 0, 5, 6, 7, 4}));
}

TEST(Rotation, MovesOneDigitPerAxis) {
  // Rows 3*node+tp: node swaps the halves, tp rotates each half.
  const Direction rows{6, {{3, 1}}};
  EXPECT_EQ(positions_after(two_by_three, rows, {1, 0}), (std::vector{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(positions_after(two_by_three, rows, {0, 1}), (std::vector{1, 2, 0, 4, 5, 3}));
  EXPECT_EQ(positions_after(two_by_three, rows, {1, 2}), (std::vector{5, 3, 4, 2, 0, 1}));
}

TEST(Rotation, IsUndoneByTheInverseRotation) {
  const Direction rows{12, {{6, 2}}};
  const Turn turn{1, 2};
  for (std::int32_t block = 0; block < rows.blocks; ++block) {
    const std::int32_t turned = rows.rotation.at(two_by_three, block, turn);
    EXPECT_EQ(rows.rotation.at(two_by_three, turned, inverse(two_by_three, turn)), block);
  }
}

TEST(Direction, IsMovedOnlyByStepsThatFillItWithWholePeriods) {
  EXPECT_TRUE((Direction{8, {}}.move(four, 0, 1)));
  EXPECT_TRUE((Direction{8, {}}.move(four, 0, -2)));
  EXPECT_FALSE((Direction{8, {}}.move(four, 0, 3)));
  EXPECT_FALSE((Direction{6, {}}.move(four, 0, 1)));
}

TEST(Direction, IsMovedByOneStepPerAxis) {
  Direction rows{8, {}};
  EXPECT_TRUE(rows.move(four, 0, 2));
  EXPECT_TRUE(rows.move(four, 0, 2));
  EXPECT_FALSE(rows.move(four, 0, 1));
  EXPECT_FALSE(rows.move(four, 0, -2));
}

TEST(Direction, IsMovedByAxesWithDistinctDigits) {
  Direction rows{12, {}};
  EXPECT_TRUE(rows.move(two_by_three, 1, 2));
  EXPECT_FALSE((Direction{rows}.move(two_by_three, 0, 2)));
  EXPECT_FALSE((Direction{rows}.move(two_by_three, 0, 3)));
  EXPECT_TRUE((Direction{rows}.move(two_by_three, 0, 1)));
  EXPECT_TRUE((Direction{rows}.move(two_by_three, 0, 6)));
}

TEST(Direction, HasEqualStepsInBothDirectionsOnTwoRanks) {
  Direction rows{2, {}};
  EXPECT_TRUE(rows.move(Mesh{{{"tp", 2}}}, 0, -1));
  EXPECT_EQ(rows.rotation.step[0], 1);
}

Index term(std::int32_t constant, std::int32_t scale, std::int32_t offset, int sign = 1) {
  Index index(constant);
  index.terms[0] = {scale, offset, sign};
  return index;
}

TEST(RotationInside, IsZeroForASpanThatATermChooses) {
  const Direction rows{8, {{2}}};
  EXPECT_EQ(rotation_inside(four, {term(0, 2, 3), 2}, rows), Rotation{});
  EXPECT_EQ(rotation_inside(four, {term(1, 2, 0), 1}, rows), Rotation{});
  EXPECT_EQ(rotation_inside(four, {term(6, -2, 0), 2}, {8, {{-2}}}), Rotation{});     // 6 - 2 tp
  EXPECT_EQ(rotation_inside(four, {term(0, 2, 0, -1), 2}, {8, {{-2}}}), Rotation{});  // 2 ((-tp) mod 4)
  EXPECT_EQ(rotation_inside(four, {term(6, -2, 1, -1), 2}, rows), Rotation{});        // 6 - 2 ((1-tp) mod 4)
}

TEST(RotationInside, EqualsTheRotationOfTheDirectionForTheWhole) {
  const Direction rows{8, {{1}}};
  EXPECT_EQ(rotation_inside(four, {0, 8}, rows), rows.rotation);
  EXPECT_EQ(rotation_inside(four, {4, 4}, rows), rows.rotation);  // This is one of two periods.
}

TEST(RotationInside, DoesNotExistUnlessTheSpanRotatesTheSpanOfRankZero) {
  const Direction rows{8, {{2}}};
  EXPECT_EQ(rotation_inside(four, {0, 2}, rows), std::nullopt);                 // equal on all ranks
  EXPECT_EQ(rotation_inside(four, {term(0, 1, 0), 1}, rows), std::nullopt);     // another scale
  EXPECT_EQ(rotation_inside(four, {term(1, 2, 0), 2}, rows), std::nullopt);     // across two units
  EXPECT_EQ(rotation_inside(four, {term(2, 2, 0), 2}, rows), std::nullopt);     // leaves the buffer on rank 3
  EXPECT_EQ(rotation_inside(four, {term(-2, 2, 0), 2}, rows), std::nullopt);    // leaves the buffer on rank 0
  EXPECT_EQ(rotation_inside(four, {2, 6}, rows), std::nullopt);                 // no whole period
  EXPECT_EQ(rotation_inside(four, {term(0, 2, 0), 2}, {8, {}}), std::nullopt);  // does not move
  EXPECT_EQ(rotation_inside(four, {0, 9}, {8, {}}), std::nullopt);
}

/// Returns true if, on every rank, the span lies inside the direction, and its block i is the rotated block i of rank
/// 0.
bool turns(const Mesh& mesh, const Span& span, const Direction& direction, const Rotation& inside) {
  const std::int32_t start = span.first.at(mesh, {});
  for (Rank rank = 0; rank < mesh.ranks(); ++rank) {
    const Turn turn = mesh.coordinates(rank);
    const std::int32_t first = span.first.at(mesh, turn);
    if (first < 0 || first + span.count > direction.blocks) {
      return false;
    }
    for (std::int32_t i = 0; i < span.count; ++i) {
      const std::int32_t to = inside.at(mesh, i, turn);
      if (to < 0 || to >= span.count || first + to != direction.rotation.at(mesh, start + i, turn)) {
        return false;
      }
    }
  }
  return true;
}

/// Returns every direction of `blocks` blocks that two axes can move.
std::vector<Direction> directions(const Mesh& mesh, std::int32_t blocks) {
  std::vector<Direction> possible;
  for (std::int32_t first = -blocks; first <= blocks; ++first) {
    for (std::int32_t second = -blocks; second <= blocks; ++second) {
      Direction direction{blocks, {}};
      if ((first == 0 || direction.move(mesh, 0, first)) &&
          (second == 0 || mesh.axes.size() == 1 || direction.move(mesh, 1, second))) {
        possible.push_back(direction);
      }
    }
  }
  return possible;
}

/// Number of indices of index_of(): constants from -1 to 12, scales of 0 and of divisors of 6 with both signs, offsets
/// from 0 to 2, both signs, and again nine scales, of the second axis.
constexpr int formulas = 14 * 9 * 3 * 2 * 9;
Index index_of(int formula, const Mesh& mesh) {
  constexpr std::array<std::int32_t, 9> scales{-6, -3, -2, -1, 0, 1, 2, 3, 6};
  const auto next = [&formula](int count) {
    const int digit = formula % count;
    formula /= count;
    return digit;
  };
  Index index(next(14) - 1);
  index.terms[0] = {scales[static_cast<std::size_t>(next(9))], next(3), static_cast<std::int8_t>(2 * next(2) - 1)};
  if (mesh.axes.size() > 1) {
    const auto sign = -index.terms[0].sign();
    index.terms[1] = {scales[static_cast<std::size_t>(next(9))], 1, sign};
  }
  return index;
}

TEST(RotationInside, IsRightForEverySmallIndexWhereItExists) {
  std::int64_t rotations = 0;
  for (const Mesh& mesh : {Mesh{{{"tp", 3}}}, Mesh{{{"tp", 2}}}, two_by_three, Mesh{{{"a", 2}, {"b", 2}}}}) {
    for (const std::int32_t blocks : {1, 2, 4, 6, 12}) {
      for (const Direction& direction : directions(mesh, blocks)) {
        for (int formula = 0; formula < formulas; ++formula) {
          const Index first = index_of(formula, mesh);
          for (const std::int32_t count : {1, 2, 3, 4, 6, 12}) {
            if (const auto inside = rotation_inside(mesh, {first, count}, direction)) {
              ++rotations;
              ASSERT_TRUE(turns(mesh, {first, count}, direction, *inside)) << formula << ", " << count;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(rotations, 1000);
}

// Moves every set of blocks 0 to 11, with one bit per block, both with Sums and block by block.
TEST(Sums, MoveAsTheirBlocksDo) {
  for (const std::int32_t period : {2, 3, 4, 6, 12}) {
    Sums sums;
    const auto sum_of = [&](unsigned bits) {
      std::vector<SumId> parts;
      for (std::int32_t block = 0; block < 12; ++block) {
        if ((bits >> static_cast<unsigned>(block) & 1U) != 0) {
          parts.push_back(sums.range(block, block + 1));
        }
      }
      return sums.unite(parts).sum;
    };
    for (std::int32_t shift = 0; shift < period; ++shift) {
      const Cycle cycle{period, shift};
      for (unsigned bits = 1; bits < 4096; ++bits) {
        unsigned moved_bits = 0;
        for (std::int32_t block = 0; block < 12; ++block) {
          moved_bits |= (bits >> static_cast<unsigned>(block) & 1U) << static_cast<unsigned>(cycle.at(block));
        }
        ASSERT_EQ(sums.moved(sum_of(bits), cycle), sum_of(moved_bits)) << bits << " by " << shift << " of " << period;
      }
    }
  }
}

}  // namespace
}  // namespace commfuse
