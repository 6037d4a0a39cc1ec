// SPDX-License-Identifier: Apache-2.0
#include "model/program/index.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/model/program/small_meshes.h"

namespace commfuse {
namespace {

using test::four;
using test::two_by_three;

std::vector<std::int32_t> on_all_ranks(const Mesh& mesh, const Index& index) {
  std::vector<std::int32_t> values;
  for (Rank rank = 0; rank < mesh.ranks(); ++rank) {
    values.push_back(index.at(mesh, mesh.coordinates(rank)));
  }
  return values;
}

using RankPositions = std::vector<std::int32_t>;

TEST(Index, APlainNumberIsTheSameEverywhere) {
  EXPECT_EQ(on_all_ranks(four, 7), (RankPositions{7, 7, 7, 7}));
  EXPECT_EQ(on_all_ranks(four, Index{7} + -2), (RankPositions{5, 5, 5, 5}));
}

TEST(Index, FollowsARotatedCoordinate) {
  EXPECT_EQ(on_all_ranks(four, along(four, 0)), (RankPositions{0, 1, 2, 3}));
  EXPECT_EQ(on_all_ranks(four, along(four, 0, 1)), (RankPositions{1, 2, 3, 0}));
  EXPECT_EQ(on_all_ranks(four, along(four, 0, -1)), (RankPositions{3, 0, 1, 2}));
  EXPECT_EQ(on_all_ranks(four, along(four, 0, -1) * 2), (RankPositions{6, 0, 2, 4}));
  EXPECT_EQ(on_all_ranks(four, along(four, 0, -1) * 2 + 1), (RankPositions{7, 1, 3, 5}));
}

TEST(Index, IndicesWithCongruentOffsetsAreEqual) {
  EXPECT_EQ(along(four, 0, -1), along(four, 0, 3));
  EXPECT_EQ(along(four, 0, 7), along(four, 0, -5));
  EXPECT_NE(along(four, 0, 1), along(four, 0, 2));
}

TEST(Index, CountsZigZagWithANegativeSignOrANegativeScale) {
  Index mirrored;  // (2 - tp) mod 4
  mirrored.terms[0] = {1, 2, -1};
  EXPECT_EQ(on_all_ranks(four, mirrored), (RankPositions{2, 1, 0, 3}));

  Index from_the_end = 7;  // 2N-1 - ((tp+1) mod 4)
  from_the_end.terms[0] = {-1, 1};
  EXPECT_EQ(on_all_ranks(four, from_the_end), (RankPositions{6, 5, 4, 7}));
}

TEST(Index, AddsUpOneTermPerAxis) {
  Index rank = along(two_by_three, 1);
  rank.terms[0] = {3, 0};  // 3*node + tp
  EXPECT_EQ(on_all_ranks(two_by_three, rank), (RankPositions{0, 1, 2, 3, 4, 5}));
  rank.terms[1] = {1, 1};  // 3*node + (tp+1) mod 3
  EXPECT_EQ(on_all_ranks(two_by_three, rank), (RankPositions{1, 2, 0, 4, 5, 3}));
}

TEST(Index, OnOneRankEveryRotationIsZero) {
  const Mesh one_rank{{{"tp", 1}}};
  EXPECT_EQ(along(one_rank, 0, -3), along(one_rank, 0));
  EXPECT_EQ(on_all_ranks(one_rank, along(one_rank, 0, 5)), (RankPositions{0}));
}

TEST(IndexDeathTest, AnAxisThatTheMeshDoesNotHaveIsAProgrammingError) {
  EXPECT_DEATH(static_cast<void>(along(four, 1)), "an index names an axis of the mesh");
}

TEST(Predicate, ComparesOneCoordinate) {
  const auto ranks_where = [](const Predicate& where) {
    std::vector<Rank> ranks;
    for (Rank rank = 0; rank < two_by_three.ranks(); ++rank) {
      if (where.holds(two_by_three.coordinates(rank))) {
        ranks.push_back(rank);
      }
    }
    return ranks;
  };
  using Ranks = std::vector<Rank>;
  EXPECT_EQ(ranks_where({}), (Ranks{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(ranks_where({Relation::equal, 1, 2}), (Ranks{2, 5}));
  EXPECT_EQ(ranks_where({Relation::not_equal, 1, 2}), (Ranks{0, 1, 3, 4}));
  EXPECT_EQ(ranks_where({Relation::less, 1, 1}), (Ranks{0, 3}));
  EXPECT_EQ(ranks_where({Relation::at_least, 0, 1}), (Ranks{3, 4, 5}));
}

}  // namespace
}  // namespace commfuse
