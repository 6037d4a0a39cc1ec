// SPDX-License-Identifier: Apache-2.0
#include "model/program/mesh.h"

#include <gtest/gtest.h>

#include "tests/model/program/small_meshes.h"

namespace commfuse {
namespace {

//            tp 0  tp 1  tp 2
//   node 0    0     1     2
//   node 1    3     4     5
using test::two_by_three;

TEST(Mesh, HasTheProductOfItsExtentsAsRanks) {
  EXPECT_EQ(two_by_three.ranks(), 6);
  EXPECT_EQ((Mesh{{{"tp", 8}}}).ranks(), 8);
  EXPECT_EQ((Mesh{{{"pod", 2}, {"node", 3}, {"tp", 4}}}).ranks(), 24);
}

TEST(Mesh, CountsTheLastAxisFastest) {
  EXPECT_EQ(two_by_three.coordinates(4), (Coordinates{1, 1, 0}));  // 4 = 3*1 + 1
  EXPECT_EQ(two_by_three.coordinates(2), (Coordinates{0, 2, 0}));
  EXPECT_EQ(two_by_three.stride(0), 3);
  EXPECT_EQ(two_by_three.stride(1), 1);
  EXPECT_EQ((Mesh{{{"pod", 2}, {"node", 3}, {"tp", 4}}}).stride(0), 12);
}

TEST(Mesh, ShiftsAlongOneAxisAndWrapsAround) {
  EXPECT_EQ(two_by_three.shifted(4, 1, 1), 5);
  EXPECT_EQ(two_by_three.shifted(4, 1, 2), 3);   // tp (1+2) mod 3 = 0
  EXPECT_EQ(two_by_three.shifted(3, 1, -1), 5);  // tp (0-1) mod 3 = 2
  EXPECT_EQ(two_by_three.shifted(4, 0, 1), 1);   // node (1+1) mod 2 = 0
  EXPECT_EQ(two_by_three.shifted(4, 1, -7), 3);  // tp (1-7) mod 3 = 0
}

TEST(Mesh, NamesTheMembersOfAGroup) {
  EXPECT_EQ(two_by_three.member(4, 1, 0), 3);
  EXPECT_EQ(two_by_three.member(4, 1, 2), 5);
  EXPECT_EQ(two_by_three.member(4, 0, 0), 1);
}

TEST(Mesh, CoordinatesAndMembersAreConsistent) {
  for (Rank rank = 0; rank < two_by_three.ranks(); ++rank) {
    const Coordinates coordinates = two_by_three.coordinates(rank);
    EXPECT_EQ(3 * coordinates[0] + coordinates[1], rank);
    EXPECT_EQ(two_by_three.member(two_by_three.member(0, 0, coordinates[0]), 1, coordinates[1]), rank);
    for (std::int32_t shift = -4; shift <= 4; ++shift) {
      EXPECT_EQ(two_by_three.shifted(two_by_three.shifted(rank, 1, shift), 1, -shift), rank);
    }
  }
}

TEST(Mesh, FoldsToAPartOfOneAxisTimesAllInnerAxes) {
  const Mesh mesh{{{"pod", 2}, {"node", 6}, {"tp", 4}}};
  const auto extents = [&](Rank ranks) {
    const std::optional<FoldedMesh> fold = folded(mesh, ranks);
    return fold ? std::optional(fold->extents) : std::nullopt;
  };
  EXPECT_EQ(extents(1), (Coordinates{1, 1, 1}));
  EXPECT_EQ(extents(2), (Coordinates{1, 1, 2}));
  EXPECT_EQ(extents(4), (Coordinates{1, 1, 4}));
  EXPECT_EQ(extents(12), (Coordinates{1, 3, 4}));
  EXPECT_EQ(extents(48), (Coordinates{2, 6, 4}));
  for (const Rank ranks : {0, 3, 6, 16, 32, 96}) {
    EXPECT_EQ(extents(ranks), std::nullopt) << ranks;
  }
  EXPECT_EQ(folded(mesh, 12)->strides, (Coordinates{12, 4, 1}));
}

TEST(Mesh, FoldingAndShiftingCommute) {
  for (const Mesh& mesh : {Mesh{{{"tp", 12}}}, Mesh{{{"node", 4}, {"tp", 6}}}, Mesh{{{"a", 2}, {"b", 6}, {"c", 2}}}}) {
    for (Rank ranks = 1; ranks <= mesh.ranks(); ++ranks) {
      const std::optional<FoldedMesh> fold = folded(mesh, ranks);
      for (Rank rank = 0; fold && rank < mesh.ranks(); ++rank) {
        for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
          for (std::int32_t shift = 0; shift < mesh.axes[axis].extent; ++shift) {
            const std::int32_t extent = fold->extents[axis];
            const std::int32_t coordinate = rank % ranks / fold->strides[axis] % extent;
            const Rank shifted = rank % ranks + ((coordinate + shift) % extent - coordinate) * fold->strides[axis];
            EXPECT_EQ(mesh.shifted(rank, static_cast<int>(axis), shift) % ranks, shifted);
          }
        }
      }
    }
  }
}

TEST(MeshDeathTest, ACoordinateOutsideItsAxisIsAProgrammingError) {
  EXPECT_DEATH(static_cast<void>(two_by_three.member(0, 1, 3)), "a coordinate lies inside its axis");
}

}  // namespace
}  // namespace commfuse
