// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/scaling.h"

#include <gtest/gtest.h>

namespace commfuse {
namespace {

ScalingPoint point(std::int64_t ranks, std::int64_t batch, std::int64_t seq, std::int64_t time) {
  return {"a", ranks, batch, seq, Duration{time}};
}

TEST(Scaling, IsStrongWhereTheSameWorkRunsOnSeveralRankCounts) {
  // From 2 to 8 ranks the speedup is at most 4; the time falls only from 300 to 100, a speedup of 3.
  const std::vector<ScalingPoint> points{point(4, 1, 1024, 180), point(2, 1, 1024, 300), point(8, 1, 1024, 100),
                                         point(2, 1, 2048, 900)};
  const std::vector<Scaling> scalings = scalings_of(points);
  ASSERT_EQ(scalings.size(), 1U);
  EXPECT_EQ(scalings[0].kind, ScalingKind::strong);
  EXPECT_EQ(scalings[0].fewest_ranks.ranks, 2);
  EXPECT_EQ(scalings[0].max_ranks.ranks, 8);
  EXPECT_DOUBLE_EQ(scalings[0].efficiency, 0.75);
}

TEST(Scaling, IsWeakWhereTokensPerRankAreFixedByBatchOrSequence) {
  const std::vector<ScalingPoint> points{point(2, 1, 2048, 100), point(4, 1, 4096, 110), point(8, 2, 4096, 125)};
  const std::vector<Scaling> scalings = scalings_of(points);
  ASSERT_EQ(scalings.size(), 1U);
  EXPECT_EQ(scalings[0].kind, ScalingKind::weak);
  EXPECT_DOUBLE_EQ(scalings[0].efficiency, 0.8);
}

TEST(Scaling, IsNeitherIfRanksAreConstantOrEverythingChanges) {
  EXPECT_TRUE(scalings_of(std::vector{point(2, 1, 1024, 1), point(2, 1, 2048, 2)}).empty());
  EXPECT_TRUE(scalings_of(std::vector{point(2, 1, 1024, 1), point(4, 1, 1536, 2)}).empty());
  EXPECT_TRUE(scalings_of({}).empty());
}

}  // namespace
}  // namespace commfuse
