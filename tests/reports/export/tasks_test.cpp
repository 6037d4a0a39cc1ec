// SPDX-License-Identifier: Apache-2.0
#include "reports/export/tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "tests/reports/export/exported.h"

namespace commfuse::test {
namespace {

using namespace std::chrono_literals;
using reports::MessageOrder;
using reports::Task;

using Cells = std::set<std::tuple<BufferId, std::int32_t, std::int32_t>>;

Cells cells_of(const std::vector<std::vector<Rectangle>>& operands) {
  Cells cells;
  for (const auto& operand : operands) {
    for (const Rectangle& rectangle : operand) {
      for (std::int32_t row = 0; row < rectangle.rows; ++row) {
        for (std::int32_t column = 0; column < rectangle.columns; ++column) {
          cells.emplace(rectangle.buffer, rectangle.row + row, rectangle.column + column);
        }
      }
    }
  }
  return cells;
}

bool overlap(const Cells& a, const Cells& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& cell) { return b.contains(cell); });
}

/// Returns, for each task, all tasks that end before the task starts.
std::vector<std::set<std::int32_t>> ancestors_of(const std::vector<Task>& tasks) {
  std::vector<std::set<std::int32_t>> ancestors_of_tasks;
  for (const Task& task : tasks) {
    std::set<std::int32_t> earlier_tasks(task.after.begin(), task.after.end());
    for (const std::int32_t earlier : task.after) {
      const auto& ancestors = ancestors_of_tasks[static_cast<std::size_t>(earlier)];
      earlier_tasks.insert(ancestors.begin(), ancestors.end());
    }
    ancestors_of_tasks.push_back(std::move(earlier_tasks));
  }
  return ancestors_of_tasks;
}

/// Expects an order between every two tasks that touch the same memory if one of them writes.
void expect_no_hazard(const Exported& exported, Rank rank, MessageOrder messages) {
  const std::vector<Task> tasks = reports::tasks_of(exported.input(), rank, {.messages = messages});
  const auto ancestors_of_tasks = ancestors_of(tasks);
  std::vector<Cells> reads(tasks.size());
  std::vector<Cells> writes(tasks.size());
  const std::vector<Command> commands = commands_of(exported.lowered, rank);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto command = std::find_if(commands.begin(), commands.end(),
                                      [&](const Command& candidate) { return candidate.op == tasks[i].op; });
    reads[i] = tasks[i].kind == Task::Kind::receive ? Cells{} : cells_of(command->inputs);
    writes[i] = tasks[i].kind == Task::Kind::send ? Cells{} : cells_of(command->outputs);
    for (std::size_t j = 0; j < i; ++j) {
      if (tasks[i].op != tasks[j].op &&
          (overlap(reads[i], writes[j]) || overlap(writes[i], writes[j]) || overlap(writes[i], reads[j]))) {
        EXPECT_TRUE(ancestors_of_tasks[i].contains(static_cast<std::int32_t>(j)))
            << label_of(tasks[i]) << " and " << label_of(tasks[j]);
      }
    }
  }
}

TEST(Tasks, BothOrdersSerializeConflictingAccesses) {
  for (const Scope scope : {Scope::gate_up, Scope::down, Scope::layer}) {
    for (const Strategy& strategy : strategies()) {
      for (const StrategyOptions& options : schedules_to_try(strategy, kinds_of(scope), 4)) {
        const Exported exported(generated(scope, 4, strategy, options), {});
        SCOPED_TRACE(exported.program->name);
        for (const MessageOrder messages : {MessageOrder::lane, MessageOrder::data}) {
          expect_no_hazard(exported, 1, messages);
        }
      }
    }
  }
}

TEST(Tasks, OmitImpliedDependencies) {
  // The ops are exchange 0, GEMM 1, exchange 2, GEMM 3, which waits for 0 and, on its lane, for 1, and GEMM 4, which
  // waits for 2 and, on its lane, for 3.
  Exported exported(one_site("commfuse", SiteKind::ag_gemm, 3), {.gemm = 10us});
  const std::vector<Task> tasks = reports::tasks_of(exported.input(), 0, {});
  std::vector<std::string> lines;
  for (const Task& task : tasks) {
    std::string line = label_of(task) + ":";
    for (const std::int32_t earlier : task.after) {
      line += " " + label_of(tasks[static_cast<std::size_t>(earlier)]);
    }
    lines.push_back(line);
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"op0_send:", "op0_receive:", "op1:", "op2_send: op0_send op0_receive",
                                             "op2_receive: op0_send op0_receive", "op3: op0_send op0_receive op1",
                                             "op4: op2_send op2_receive op3"}));
}

TEST(Tasks, EveryRankHasItsOwnPrice) {
  Exported exported(one_site("commfuse", SiteKind::ag_gemm, 2), {.gemm = 10us});
  for (Rank rank = 0; rank < 2; ++rank) {
    for (std::size_t op = 0; op < exported.program->ops.size(); ++op) {
      exported.costs.by_rank.push_back(rank * 100us + exported.costs.duration[op]);
    }
  }
  EXPECT_EQ(reports::tasks_of(exported.input(), 0, {}).back().time, 10us);
  EXPECT_EQ(reports::tasks_of(exported.input(), 1, {}).back().time, 110us);
}

TEST(Tasks, ASendToTheOwnRankIsACalculation) {
  ProgramBuilder builder("self", Mesh{{{"tp", 2}}});
  const DimensionId tokens = builder.dimension("tokens", 2);
  const BufferId from = builder.buffer("from", BufferRole::input, {tokens, 1}, {tokens, 1}, DType::bf16);
  const BufferId to = builder.buffer("to", BufferRole::output, {tokens, 1}, {tokens, 1}, DType::bf16);
  builder.exchange({.shift = 2, .send = {builder.whole(from)}, .receive = {builder.whole(to)}});
  const Exported exported(std::move(builder).build(), {.exchange = 3us});
  const std::vector<Task> tasks = reports::tasks_of(exported.input(), 0, {});
  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_EQ(tasks[0].kind, Task::Kind::calculation);
  EXPECT_EQ(tasks[0].time, 3us);
}

TEST(Tasks, OmitOpsOfOtherRanks) {
  ProgramBuilder builder("one way", Mesh{{{"tp", 3}}});
  const DimensionId tokens = builder.dimension("tokens", 1);
  const BufferId from = builder.buffer("from", BufferRole::input, {tokens, 1}, {tokens, 1}, DType::bf16);
  const BufferId to = builder.buffer("to", BufferRole::output, {tokens, 1}, {tokens, 1}, DType::bf16);
  const OpId sends = builder.exchange({.send = {builder.whole(from)}});
  builder.only_where(sends, {Relation::equal, 0, 0});
  const OpId receives = builder.exchange({.receive = {builder.whole(to)}});
  builder.only_where(receives, {Relation::equal, 0, 1});
  const Exported exported(std::move(builder).build(), {});
  const std::vector<Task> from_0 = reports::tasks_of(exported.input(), 0, {});
  const std::vector<Task> to_1 = reports::tasks_of(exported.input(), 1, {});
  ASSERT_EQ(from_0.size(), 1U);
  ASSERT_EQ(to_1.size(), 1U);
  EXPECT_EQ(from_0[0].kind, Task::Kind::send);
  EXPECT_EQ(to_1[0].kind, Task::Kind::receive);
  EXPECT_EQ(from_0[0].tag, to_1[0].tag);  // the tag follows from the sender's op, though the receiver's op differs
  EXPECT_TRUE(reports::tasks_of(exported.input(), 2, {}).empty());
}

}  // namespace
}  // namespace commfuse::test
