// SPDX-License-Identifier: Apache-2.0
// Critical paths on three ranks, worked out by hand; times are in us.
#include "model/analysis/critical_path.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>

#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

constexpr std::int32_t path_ranks = 3;

Lowered three_ranks(Scope scope, const char* strategy) {
  return lower(std::make_shared<const Program>(
      generate(operation_of(scope, true), Mesh{{{"tp", path_ranks}}}, 0, *find_strategy(strategy), {})));
}

Instant at_microsecond(int microseconds) { return Instant{std::chrono::microseconds(microseconds)}; }

PathStep step(Rank rank, int op, PathKind kind, int from, int to) {
  return {rank, OpId{op}, kind, at_microsecond(from), at_microsecond(to)};
}

/// A run given by spans in us, indexed by rank and op, and by costs in us; issuing an op takes `issue`.
struct Simulated {
  Timeline timeline;
  Costs costs;

  Simulated(const std::vector<std::vector<std::pair<int, int>>>& spans, const std::vector<std::vector<int>>& prices,
            Duration issue) {
    for (std::size_t rank = 0; rank < spans.size(); ++rank) {
      for (std::size_t op = 0; op < spans[rank].size(); ++op) {
        timeline.push_back({static_cast<Rank>(rank), OpId{static_cast<std::int32_t>(op)},
                            at_microsecond(spans[rank][op].first), at_microsecond(spans[rank][op].second)});
        costs.by_rank.emplace_back(std::chrono::microseconds(prices[rank][op]));
      }
    }
    costs.duration.assign(spans.front().size(), Duration{});
    costs.issue.assign(spans.front().size(), issue);
  }
};

TEST(CriticalPath, RunsBackThroughTheSlowTransferOfAnotherRank) {
  // Op 0 sends the rank's own shard, op 2 the received shard; 1, 3 and 4 are GEMMs. Rank 1's first transfer takes 20.
  // Op 0: halves 0->1 1-13, 1->2 1-21, 2->0 1-13, so it ends at 13 on rank 0 and at 21 on ranks 1 and 2.
  // Op 2: every half waits for rank 1 or 2, which are free at 21: 21-33. Op 4 follows: 33-43.
  const Simulated simulated({{{1, 13}, {2, 12}, {21, 33}, {13, 23}, {33, 43}},
                             {{1, 21}, {2, 12}, {21, 33}, {21, 31}, {33, 43}},
                             {{1, 21}, {2, 12}, {21, 33}, {21, 31}, {33, 43}}},
                            {{12, 10, 12, 10, 10}, {20, 10, 12, 10, 10}, {12, 10, 12, 10, 10}}, 1us);
  const CriticalPath path = critical_path(three_ranks(Scope::gate_up, "commfuse"), simulated.costs, simulated.timeline);
  EXPECT_EQ(path, (CriticalPath{step(1, 0, PathKind::issue, 0, 1), step(1, 0, PathKind::communication, 1, 21),
                                step(0, 2, PathKind::communication, 21, 33), step(0, 4, PathKind::essential, 33, 43)}));
  const PathShares shares = shares_of(path, path_ranks);
  EXPECT_EQ(shares.by_kind, (std::array<Duration, path_kinds>{10us, 0us, 32us, 1us}));
  EXPECT_EQ(shares.by_rank, (std::vector<Duration>{22us, 21us, 0us}));
}

TEST(CriticalPath, ACollectiveTakesTheTimeOfItsSlowestMember) {
  // All-gather 2-11 (members 5, 9, 7), then GEMMs of 10, 10, 30.
  const Simulated simulated({{{2, 11}, {11, 21}}, {{2, 11}, {11, 21}}, {{2, 11}, {11, 41}}},
                            {{5, 10}, {9, 10}, {7, 30}}, 2us);
  EXPECT_EQ(critical_path(three_ranks(Scope::gate_up, "serial"), simulated.costs, simulated.timeline),
            (CriticalPath{step(0, 0, PathKind::issue, 0, 2), step(1, 0, PathKind::communication, 2, 11),
                          step(2, 1, PathKind::essential, 11, 41)}));
}

TEST(CriticalPath, ACollectiveWaitsForItsLastArriver) {
  // GEMMs of 10, 25, 12, starting at 1, then a reduce-scatter 26-34.
  const Simulated simulated({{{1, 11}, {26, 34}}, {{1, 26}, {26, 34}}, {{1, 13}, {26, 34}}},
                            {{10, 8}, {25, 8}, {12, 8}}, 1us);
  EXPECT_EQ(critical_path(three_ranks(Scope::down, "serial"), simulated.costs, simulated.timeline),
            (CriticalPath{step(1, 0, PathKind::issue, 0, 1), step(1, 0, PathKind::essential, 1, 26),
                          step(0, 1, PathKind::communication, 26, 34)}));
}

TEST(CriticalPath, ALateHostIsOnThePathInsteadOfItsGather) {
  // Issuing takes 50 per op, a GEMM 10 and the all-gather 8, so the GEMM is issued at 100.
  const Simulated simulated({{{50, 58}, {100, 110}}, {{50, 58}, {100, 110}}, {{50, 58}, {100, 110}}},
                            {{8, 10}, {8, 10}, {8, 10}}, 50us);
  EXPECT_EQ(critical_path(three_ranks(Scope::gate_up, "serial"), simulated.costs, simulated.timeline),
            (CriticalPath{step(0, 1, PathKind::issue, 0, 100), step(0, 1, PathKind::essential, 100, 110)}));
}

TEST(CriticalPath, OpsWithoutDurationAreNotOnThePath) {
  const Simulated simulated({{{0, 0}, {0, 10}}, {{0, 0}, {0, 10}}, {{0, 0}, {0, 10}}}, {{0, 10}, {0, 10}, {0, 10}},
                            0us);
  EXPECT_EQ(critical_path(three_ranks(Scope::gate_up, "serial"), simulated.costs, simulated.timeline),
            (CriticalPath{step(0, 1, PathKind::essential, 0, 10)}));
}

}  // namespace
}  // namespace commfuse
