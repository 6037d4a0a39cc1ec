// SPDX-License-Identifier: Apache-2.0
#include "reports/export/goal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <iterator>

#include "model/config_error.h"
#include "model/proof/check_program.h"
#include "tests/reports/export/exported.h"
#include "tests/reports/export/goal_reader.h"

namespace commfuse::test {
namespace {

using namespace std::chrono_literals;
using reports::MessageOrder;
using Kind = GoalTask::Kind;

constexpr std::int64_t width = 16384;  // columns; a shard of one row in bf16 has 32768 B

std::string text_of(const Exported& exported, MessageOrder messages) {
  std::string text = reports::goal_head(exported.input());
  for (Rank rank = 0; rank < exported.program->mesh.ranks(); ++rank) {
    text += reports::goal_of(exported.input(), rank, messages);
  }
  return text;
}

std::vector<GoalRank> goal_of(const Exported& exported, MessageOrder messages) {
  return GoalReader::read(text_of(exported, messages));
}

std::vector<GoalRank> reference(const std::string& name) {
  std::ifstream in(COMMFUSE_SOURCE_DIR "/tests/reports/export/reference/" + name);
  return GoalReader::read({std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()});
}

std::size_t count_of(const GoalRank& rank, Kind kind) {
  return static_cast<std::size_t>(
      std::count_if(rank.begin(), rank.end(), [&](const GoalTask& task) { return task.kind == kind; }));
}

Exported all_gather() { return {ring_all_gather(8), {.exchange = 1us}, width}; }
Exported fuse_ag() { return {one_site("commfuse", SiteKind::ag_gemm, 8), {.gemm = 10us, .exchange = 1us}, width}; }

// --- handwritten references ------------------------------------------------------------------------------------------

void expect_equal(const std::vector<GoalRank>& goal, const std::vector<GoalRank>& expected) {
  ASSERT_EQ(goal.size(), expected.size());
  for (std::size_t rank = 0; rank < goal.size(); ++rank) {
    EXPECT_EQ(meaning_of(goal[rank]), meaning_of(expected[rank])) << "rank " << rank;
    std::size_t edges = 0;
    std::size_t expected_edges = 0;
    for (const GoalTask& task : goal[rank]) {
      edges += task.after.size();
    }
    for (const GoalTask& task : expected[rank]) {
      expected_edges += task.after.size();
    }
    EXPECT_EQ(edges, expected_edges) << "implied dependencies must be omitted";
  }
  EXPECT_EQ(messages_of(goal).size(), messages_of(expected).size());
}

TEST(GoalExport, AnAllGatherOfEightRanksEqualsItsReference) {
  const Exported exported = all_gather();
  ASSERT_TRUE(check_program(*exported.program).ok());
  const std::vector<GoalRank> goal = goal_of(exported, MessageOrder::data);
  expect_equal(goal, reference("ag8.goal"));
  for (const GoalRank& rank : goal) {
    EXPECT_EQ(count_of(rank, Kind::send), 7U);
    EXPECT_EQ(count_of(rank, Kind::recv), 7U);
    EXPECT_EQ(count_of(rank, Kind::calc), 0U);
    EXPECT_EQ(meaning_of(rank).after.size(), 6U);
  }
}

TEST(GoalExport, FuseAgOnEightRanksEqualsItsReference) {
  const std::vector<GoalRank> goal = goal_of(fuse_ag(), MessageOrder::data);
  expect_equal(goal, reference("fa8.goal"));
  for (const GoalRank& rank : goal) {
    EXPECT_EQ(count_of(rank, Kind::send), 7U);
    EXPECT_EQ(count_of(rank, Kind::recv), 7U);
    EXPECT_EQ(count_of(rank, Kind::calc), 8U);
    EXPECT_EQ(meaning_of(rank).after.size(), 20U);
  }
}

TEST(GoalExport, InLaneOrderAnExchangeFollowsBothHalvesOfThePrevious) {
  const std::vector<GoalRank> goal = goal_of(fuse_ag(), MessageOrder::lane);
  const std::vector<GoalRank> expected = reference("fa8.goal");
  messages_of(goal);
  for (std::size_t rank = 0; rank < goal.size(); ++rank) {
    const GoalMeaning actual = meaning_of(goal[rank]);
    const GoalMeaning by_hand = meaning_of(expected[rank]);
    EXPECT_EQ(actual.tasks, by_hand.tasks);
    for (const auto& edge : by_hand.after) {
      EXPECT_TRUE(actual.after.contains(edge));
    }
    for (std::size_t step = 1; step < 7; ++step) {
      for (const Kind half : {Kind::send, Kind::recv}) {
        for (const Kind previous_half : {Kind::send, Kind::recv}) {
          EXPECT_TRUE(actual.after.contains({{half, step}, {previous_half, step - 1}}));
        }
      }
    }
    // Both halves of 6 exchanges wait for both halves of the previous exchange; 7 tiles wait for both halves of an
    // exchange and for the previous tile.
    EXPECT_EQ(actual.after.size(), 6U * 4 + 7 * 3);
  }
}

// --- collectives -----------------------------------------------------------------------------------------------------

struct Expansion {
  CollectiveKind kind;
  std::size_t steps;
  std::vector<std::int64_t> targets;  // targets of rank 1 of 4
};

TEST(GoalExport, CollectivesExpandToTheMessagesOfTheirAlgorithm) {
  for (const Expansion& expected :
       {Expansion{CollectiveKind::all_gather, 3, {2, 2, 2}}, Expansion{CollectiveKind::reduce_scatter, 3, {2, 2, 2}},
        Expansion{CollectiveKind::all_reduce, 6, {2, 2, 2, 2, 2, 2}},
        Expansion{CollectiveKind::all_to_all, 3, {2, 3, 0}}}) {
    const std::vector<GoalRank> goal = goal_of({one_collective(expected.kind, 4), {}}, MessageOrder::lane);
    ASSERT_EQ(goal.size(), 4U);
    EXPECT_EQ(messages_of(goal).size(), 4 * expected.steps);
    std::vector<std::int64_t> targets;
    for (const GoalTask& task : goal[1]) {
      EXPECT_EQ(task.amount, 3 * 2) << "a fourth of 12 rows in bf16";
      if (task.kind == Kind::send) {
        targets.push_back(task.peer);
      }
    }
    EXPECT_EQ(targets, expected.targets);
    EXPECT_EQ(meaning_of(goal[1]).after.size(), (expected.steps - 1) * 4);
  }
}

TEST(GoalExport, MessagesOfACollectiveStayWithinTheirGroup) {
  const std::vector<GoalRank> goal =
      goal_of({one_collective(CollectiveKind::all_gather, 3, 2), {}}, MessageOrder::lane);
  for (const auto& [send, receive] : messages_of(goal)) {
    EXPECT_EQ(send.first / 3, receive.first / 3);
  }
}

TEST(GoalExport, RoundsUpUnevenParts) {
  Exported exported(one_collective(CollectiveKind::all_reduce, 4), {});
  exported.sizes.block = {3, 3};  // 36 x 3 in bf16: 216 B
  EXPECT_EQ(goal_of(exported, MessageOrder::lane)[0][0].amount, 54);
  exported.sizes.block = {1, 1};
  Exported one_rank(one_collective(CollectiveKind::all_reduce, 1), {.collective = 5us});
  const std::vector<GoalRank> one_rank_goal = goal_of(one_rank, MessageOrder::lane);
  ASSERT_EQ(one_rank_goal[0].size(), 1U);
  EXPECT_EQ(one_rank_goal[0][0].kind, Kind::calc);  // a single rank has no peer
  EXPECT_EQ(one_rank_goal[0][0].amount, 5000);
}

// --- duration --------------------------------------------------------------------------------------------------------

/// Computes the makespan of GOAL ranks by commfuse's rules: a message takes `transfer` once both its ends are ready.
class Clock {
 public:
  Clock(const std::vector<GoalRank>& ranks, std::int64_t transfer)
      : ranks_(ranks), transfer_(transfer), partners_(messages_of(ranks)), ends_(ranks.size()) {
    for (const auto& [send, receive] : messages_of(ranks)) {
      partners_[receive] = send;
    }
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      ends_[rank].assign(ranks[rank].size(), -1);
    }
  }

  std::int64_t makespan() {
    std::int64_t last = 0;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (std::size_t index = 0; index < ranks_[rank].size(); ++index) {
        last = std::max(last, end(rank, index));
      }
    }
    return last;
  }

 private:
  std::int64_t ready(std::size_t rank, std::size_t index) {
    std::int64_t time = 0;
    for (const std::size_t earlier : ranks_[rank][index].after) {
      time = std::max(time, end(rank, earlier));
    }
    return time;
  }

  std::int64_t end(std::size_t rank, std::size_t index) {
    std::int64_t& end_time = ends_[rank][index];
    if (end_time < 0) {
      if (ranks_[rank][index].kind == Kind::calc) {
        end_time = ready(rank, index) + ranks_[rank][index].amount;
      } else {
        const auto [other, other_index] = partners_.at({rank, index});
        end_time = std::max(ready(rank, index), ready(other, other_index)) + transfer_;
      }
    }
    return end_time;
  }

  const std::vector<GoalRank>& ranks_;
  std::int64_t transfer_;
  std::map<std::pair<std::size_t, std::size_t>, std::pair<std::size_t, std::size_t>> partners_;
  std::vector<std::vector<std::int64_t>> ends_;
};

std::int64_t engine_makespan(const Exported& exported) {
  Recorder recorder;
  Engine{}.run(plan_of(exported.lowered), exported.costs, recorder);
  return recorder.makespan().time_since_epoch().count() / 1000;
}

/// Calls `visit` with every schedule, on a few scopes and rank counts.
template <class Visit>
void for_all_schedules(const Visit& visit) {
  for (const Scope scope : {Scope::qkv, Scope::down, Scope::layer}) {
    for (const std::int32_t ranks : {1, 2, 3, 4}) {
      for (const Strategy& strategy : strategies()) {
        for (const StrategyOptions& options : schedules_to_try(strategy, kinds_of(scope), ranks)) {
          Program program = generated(scope, ranks, strategy, options);
          SCOPED_TRACE(testing::Message() << program.name << " on " << ranks);
          visit(std::move(program), ranks);
        }
      }
    }
  }
}

TEST(GoalExport, MakespanEqualsThatOfTheEngineUnderTheSameRules) {
  for_all_schedules([](const Program& program, std::int32_t ranks) {
    for (const Duration issue : {Duration{}, Duration{2us}}) {
      const Exported exported(program, {.gemm = 10us,
                                        .exchange = 4us,
                                        // equal to the sum of the steps of its expansion
                                        .collective = (ranks - 1) * 4us,
                                        .elementwise = 3us,
                                        .issue = issue});
      const std::vector<GoalRank> goal = goal_of(exported, MessageOrder::lane);
      EXPECT_EQ(Clock(goal, 4000).makespan(), engine_makespan(exported));
    }
  });
}

TEST(GoalExport, AGraphLaunchIsIssuedOnce) {
  Exported exported = fuse_ag();
  exported.costs.issue.assign(exported.program->ops.size(), Duration{});
  exported.costs.issue.front() = 7us;
  const std::vector<GoalRank> goal = goal_of(exported, MessageOrder::lane);
  EXPECT_EQ(count_of(goal[0], Kind::calc), 9U);
  EXPECT_EQ(Clock(goal, 1000).makespan(), engine_makespan(exported));
}

TEST(GoalExport, DataOrderIsNeverSlower) {
  for_all_schedules([](const Program& program, std::int32_t ranks) {
    const Exported exported(program, {.gemm = 10us, .exchange = 25us, .collective = ranks * 4us, .elementwise = 3us});
    const std::vector<GoalRank> by_lane = goal_of(exported, MessageOrder::lane);
    const std::vector<GoalRank> by_data = goal_of(exported, MessageOrder::data);
    EXPECT_LE(Clock(by_data, 25000).makespan(), Clock(by_lane, 25000).makespan());
  });
}

// --- the text --------------------------------------------------------------------------------------------------------

TEST(GoalExport, CalculationsOfACpuNeverOverlap) {
  for_all_schedules([](const Program& program, std::int32_t /*ranks*/) {
    const Exported exported(program, {.gemm = 10us, .exchange = 4us, .elementwise = 3us, .issue = 1us});
    for (const GoalRank& rank : goal_of(exported, MessageOrder::data)) {
      std::vector<std::set<std::size_t>> ancestors_of_tasks;
      std::map<std::int64_t, std::size_t> last_on_cpu;
      for (std::size_t index = 0; index < rank.size(); ++index) {
        std::set<std::size_t> ancestors;
        for (const std::size_t earlier : rank[index].after) {
          ancestors.insert(ancestors_of_tasks[earlier].begin(), ancestors_of_tasks[earlier].end());
          ancestors.insert(earlier);
        }
        if (rank[index].kind == Kind::calc) {
          const auto previous = last_on_cpu.find(rank[index].cpu);
          EXPECT_TRUE(previous == last_on_cpu.end() || ancestors.contains(previous->second)) << "task " << index;
          last_on_cpu[rank[index].cpu] = index;
        }
        ancestors_of_tasks.push_back(std::move(ancestors));
      }
    }
  });
}

TEST(GoalExport, TextHasTheFormatOfTxt2bin) {
  const Exported exported(one_site("commfuse", SiteKind::ag_gemm, 2), {.gemm = Duration{10'000'400}, .issue = 1us}, 4);
  constexpr const char* rank =  // {0} is the rank, {1} its peer
      "rank {0} {{\n"
      "op0_issue: calc 1000 cpu 2\n"
      "op0_send: send 8b to {1} tag 0 cpu 0\n"
      "op0_send requires op0_issue\n"
      "op0_receive: recv 8b from {1} tag 0 cpu 0\n"
      "op0_receive requires op0_issue\n"
      "op1_issue: calc 1000 cpu 2\n"
      "op1_issue requires op0_issue\n"
      "op1: calc 10000 cpu 1\n"
      "op1 requires op1_issue\n"
      "op2_issue: calc 1000 cpu 2\n"
      "op2_issue requires op1_issue\n"
      "op2: calc 10000 cpu 1\n"
      "op2 requires op0_send\n"
      "op2 requires op0_receive\n"
      "op2 requires op1\n"
      "op2 requires op2_issue\n"
      "}}\n";
  EXPECT_EQ(text_of(exported, MessageOrder::lane),
            "// 'commfuse (ring) site': a schedule of commfuse\nnum_ranks 2\n\n" + fmt::format(rank, 0, 1) + "\n" +
                fmt::format(rank, 1, 0));
}

TEST(GoalExport, ALineBreakInANameIsEscaped) {
  Program program = ring_all_gather(2);
  program.name = "two\nlines";
  const Exported exported(std::move(program), {});
  EXPECT_EQ(reports::goal_head(exported.input()), "// 'two\\x0alines': a schedule of commfuse\nnum_ranks 2\n");
}

TEST(GoalExport, MoreLanesThanGoalHasCpusAreAnError) {
  Program program = ring_all_gather(2);
  program.lanes.resize(256);
  const Exported exported(std::move(program), {});
  try {
    reports::goal_head(exported.input());
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "'AG' has 256 lanes, but GOAL counts CPUs only up to 255; use fewer lanes");
  }
}

}  // namespace
}  // namespace commfuse::test
