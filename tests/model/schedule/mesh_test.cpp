// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/mesh.h"

#include <gtest/gtest.h>

namespace commfuse {
namespace {

//            tp 0  tp 1  tp 2
//   node 0    0     1     2
//   node 1    3     4     5
const Mesh two_by_three{{{"node", 2}, {"tp", 3}}};

TEST(Mesh, HasAsManyRanksAsTheProductOfItsExtents) {
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

TEST(Mesh, EveryRankIsWhereItsCoordinatesSay) {
  for (Rank rank = 0; rank < two_by_three.ranks(); ++rank) {
    const Coordinates here = two_by_three.coordinates(rank);
    EXPECT_EQ(3 * here[0] + here[1], rank);
    EXPECT_EQ(two_by_three.member(two_by_three.member(0, 0, here[0]), 1, here[1]), rank);
    for (std::int32_t shift = -4; shift <= 4; ++shift) {
      EXPECT_EQ(two_by_three.shifted(two_by_three.shifted(rank, 1, shift), 1, -shift), rank);
    }
  }
}

TEST(MeshDeathTest, ACoordinateOutsideItsAxisIsOurMistake) {
  EXPECT_DEATH(static_cast<void>(two_by_three.member(0, 1, 3)), "a coordinate lies inside its axis");
}

}  // namespace
}  // namespace commfuse
