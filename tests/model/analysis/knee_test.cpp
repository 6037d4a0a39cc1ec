// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/knee.h"

#include <gtest/gtest.h>

namespace commfuse {
namespace {

using Curve = std::vector<CurvePoint>;

TEST(Knee, IsThePointFarthestFromTheChord) {
  EXPECT_EQ(knee_of(Curve{{0, 0}, {1, 6}, {2, 9}, {3, 10}, {4, 10}}), 2U);
  EXPECT_EQ(knee_of(Curve{{1, 10}, {2, 3}, {3, 2}, {4, 1}}), 1U);  // The curve falls.
  EXPECT_EQ(knee_of(Curve{{0, 0}, {1, 5}, {2, 5}, {10, 5}}), 1U);
}

TEST(Knee, AStraightOrFlatOrShortCurveHasNone) {
  EXPECT_EQ(knee_of(Curve{{0, 0}, {1, 1}, {2, 2}}), std::nullopt);
  EXPECT_EQ(knee_of(Curve{{0, 3}, {1, 3}, {2, 3}}), std::nullopt);
  EXPECT_EQ(knee_of(Curve{{0, 0}, {1, 1}}), std::nullopt);
}

TEST(Plateau, IsWhereTheCurveReachesItsShareOfTheEnd) {
  EXPECT_EQ(plateau_of(Curve{{1, 50}, {2, 90}, {4, 100}}, 0.95), 3.0);
  EXPECT_EQ(plateau_of(Curve{{1, 96}, {2, 98}, {4, 100}}, 0.95), 1.0);
  EXPECT_EQ(plateau_of(Curve{{1, 0}, {2, 0}}, 0.95), std::nullopt);
}

TEST(Pareto, KeepsPointsThatNoOtherBeatsInBoth) {
  EXPECT_EQ(pareto_of(Curve{{3, 1}, {1, 3}, {2, 2}, {2, 5}, {4, 1}, {3, 4}}), (std::vector<std::size_t>{1, 2, 0}));
  EXPECT_EQ(pareto_of(Curve{{1, 1}, {1, 1}}), std::vector<std::size_t>{0});
  EXPECT_TRUE(pareto_of({}).empty());
}

}  // namespace
}  // namespace commfuse
