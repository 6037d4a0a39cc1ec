// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/tails.h"

#include <gtest/gtest.h>

#include <chrono>

namespace commfuse::test {
namespace {

using namespace std::chrono_literals;

TEST(NearP99, TakesRuns985To995OfAThousand) {
  std::vector<Duration> makespans;
  for (int i = 0; i < 1000; ++i) {
    makespans.emplace_back((i * 7 % 1000) * 1us);  // 0 to 999, in some order
  }
  const std::vector<std::size_t> near = near_p99(makespans, 100);
  ASSERT_EQ(near.size(), 11U);
  EXPECT_EQ(makespans[near.front()], 984us);
  EXPECT_EQ(makespans[near.back()], 994us);
}

TEST(NearP99, TakesEvenlySpreadRunsOfMany) {
  std::vector<Duration> makespans;
  for (int i = 0; i < 100'000; ++i) {
    makespans.emplace_back(i * 1us);
  }
  const std::vector<std::size_t> near = near_p99(makespans, 10);
  ASSERT_EQ(near.size(), 10U);
  EXPECT_EQ(near[0], 98'499U);
  EXPECT_EQ(near[1] - near[0], 100U);
}

TEST(NearP99, TakesTheOnlyRun) { EXPECT_EQ(near_p99({5us}, 400), (std::vector<std::size_t>{0})); }

TEST(P99Collector, MeansAddUpAndSharesCountRuns) {
  // Two runs: 10 = 6 compute + 4 head, and 15 = 6 compute + 3 stretch + 6 head. The second waits for rank 1.
  P99Collector collector(2);
  collector.add({.makespan = 10us, .compute = 6us, .exposed = 4us, .head = 4us, .busy = 6us},
                {{.rank = 0, .op = OpId{0}, .kind = PathKind::communication, .from = Instant{0us}, .to = Instant{4us}},
                 {.rank = 0, .op = OpId{1}, .kind = PathKind::essential, .from = Instant{4us}, .to = Instant{10us}}});
  collector.add({.makespan = 15us, .compute = 6us, .stretch = 3us, .exposed = 6us, .head = 6us, .busy = 9us},
                {{.rank = 1, .op = OpId{1}, .kind = PathKind::essential, .from = Instant{0us}, .to = Instant{15us}}});
  const P99Causes causes = collector.causes();
  EXPECT_EQ(causes.samples, 2U);
  EXPECT_EQ(causes.mean.makespan, 12500ns);
  EXPECT_EQ(causes.mean.head, 5us);
  EXPECT_EQ(causes.mean.exposed, 5us);
  EXPECT_EQ(causes.mean.stretch, 1500ns);
  EXPECT_EQ(causes.on_path[static_cast<std::size_t>(PathKind::essential)], 1.0);
  EXPECT_EQ(causes.on_path[static_cast<std::size_t>(PathKind::communication)], 0.5);
  EXPECT_EQ(causes.time_on_path[static_cast<std::size_t>(PathKind::communication)], 2us);
  EXPECT_EQ(causes.rank_on_path, (std::vector{0.5, 0.5}));
  EXPECT_EQ(causes.rank_time_on_path, (std::vector<Duration>{5us, 7500ns}));
  EXPECT_EQ(causes.worst_rank(), 1);
  EXPECT_DOUBLE_EQ(causes.share_of_path(1), 0.6);
}

}  // namespace
}  // namespace commfuse::test
