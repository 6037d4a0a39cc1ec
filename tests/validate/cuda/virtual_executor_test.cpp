// SPDX-License-Identifier: Apache-2.0
// Tests that the work of the cuda-virtual executor gives the interpreter's bits in any order that the device chooses.
#include "validate/cuda/virtual_executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "model/program/builder.h"
#include "tests/validate/cuda/fake_driver.h"
#include "tests/validate/gather_in_place.h"
#include "tests/validate/planted.h"
#include "tests/validate/reference/matrices.h"
#include "validate/cuda/nccl_plan.h"
#include "validate/reference/check_point.h"
#include "validate/reference/data.h"
#include "validate/reference/interpreter.h"
#include "validate/reference/verify.h"

namespace commfuse::validate {
namespace {

using test::FakeCluster;
using test::operation_named;
using test::points_of;
using test::shared;

/// Returns a function that makes executors on this device.
MakeExecutor executor_on(Device& device, VirtualOptions options = {}) {
  return [&device, options](Lowered lowered, Sizes sizes) {
    return std::make_unique<VirtualExecutor>(std::move(lowered), std::move(sizes), device, options);
  };
}

class VirtualRanks : public testing::TestWithParam<std::int32_t> {};
INSTANTIATE_TEST_SUITE_P(OneToFour, VirtualRanks, testing::Range(1, 5));

TEST_P(VirtualRanks, EveryScheduleGivesTheInterpretersBitsInAnyDeviceOrder) {
  for (const CheckedOperation& operation : checked_operations()) {
    for (const CheckPoint& point : points_of(operation, GetParam(), DType::bf16)) {
      const auto program = shared(program_of(point));
      FakeCluster cluster(1, 7);
      Device device(cluster.device(0));
      const Verdict verdict =
          verify(program, checked_sizes(*program)[0], {.seed = 1, .orders = 3, .executor = executor_on(device)});
      EXPECT_TRUE(verdict.ok()) << program->name << " " << point.ranks;
      EXPECT_EQ(verdict.same_order.value_or(Tally{}).wrong, 0) << program->name;
      EXPECT_EQ(cluster.device(0).allocations(), 0U) << program->name;
    }
  }
}

std::shared_ptr<const Program> shared_program(std::string_view operation, std::string_view strategy,
                                              std::int32_t ranks) {
  return shared(program_of({&operation_named(operation), find_strategy(strategy), {}, ranks, 1}));
}

TEST(VirtualRanksOfEight, GiveTheInterpretersBits) {
  for (const char* operation : {"ag_gemm", "gemm_rs", "mlp_swiglu", "attention"}) {
    for (const char* strategy : {"serial", "sliced", "commfuse"}) {
      if (std::ranges::find(checked_operations(), operation, &CheckedOperation::name) == checked_operations().end()) {
        continue;
      }
      const auto program = shared_program(operation, strategy, 8);
      FakeCluster cluster(1, 3);
      Device device(cluster.device(0));
      EXPECT_TRUE(verify(program, checked_sizes(*program)[1], {.orders = 2, .executor = executor_on(device)}).ok())
          << program->name;
    }
  }
}

/// True if every rank's outputs have the interpreter's bits, for values that no narrow dtype represents.
bool ends_as_interpreted(const std::shared_ptr<const Program>& program, Device& device) {
  const Sizes sizes = checked_sizes(*program)[0];
  const std::vector<Matrix<float>> data = input_data(*program, sizes, DataKind::random, 3);
  Interpreter interpreter(lower(program), sizes);
  VirtualExecutor executor(lower(program), sizes, device, {});
  for (Executor* compared : std::array<Executor*, 2>{&interpreter, &executor}) {
    compared->prepare(data);
    compared->run({});
  }
  bool is_same = true;
  for (Rank rank = 0; rank < program->mesh.ranks(); ++rank) {
    for (const Content& content : program->final) {
      const Rectangle area = rectangle_of(*program, content.here, program->mesh.coordinates(rank));
      is_same =
          is_same && std::ranges::equal(executor.fetch(rank, area).values(), interpreter.fetch(rank, area).values());
    }
  }
  return is_same;
}

TEST(VirtualExecutor, RoundsItsOwnRowsOfAGatherInPlace) {
  for (const DType wire : {DType::bf16, DType::fp16, DType::fp32}) {
    const auto program = shared(test::gather_in_place(3, DType::fp32, wire));
    FakeCluster cluster(1, 3);
    Device device(cluster.device(0));
    EXPECT_TRUE(ends_as_interpreted(program, device)) << name_of(wire);
  }
}

bool is_caught_on_virtual_ranks(const Program& program, const Sizes& sizes, std::uint64_t seed) {
  FakeCluster cluster(1, seed);
  Device device(cluster.device(0));
  VirtualExecutor executor(lower(shared(program)), sizes, device, {});
  return test::goes_wrong(executor, seed);
}

TEST(VirtualExecutor, CatchesPlantedMistakesOfEveryKind) {
  std::array<test::Caught, 5> kinds;
  for (const char* name : {"ag_gemm", "gemm_rs"}) {
    test::plant_in(program_of({&operation_named(name), &commfuse_strategy, {.slices = 2}, 3, 1}),
                   is_caught_on_virtual_ranks, 20, kinds);
  }
  test::expect_caught(kinds, 1);
}

TEST(VirtualExecutor, GivesTheSameBitsBehindAGateByGraphAndOnOneStream) {
  const auto program = shared_program("mlp_swiglu", "commfuse", 4);
  for (const VirtualOptions options :
       {VirtualOptions{.mode = LaunchMode::gated}, VirtualOptions{.mode = LaunchMode::graph},
        VirtualOptions{.one_stream = true}, VirtualOptions{.mode = LaunchMode::graph, .one_stream = true}}) {
    FakeCluster cluster(1, 5);
    Device device(cluster.device(0));
    EXPECT_TRUE(
        verify(program, checked_sizes(*program)[0], {.orders = 4, .executor = executor_on(device, options)}).ok());
  }
}

TEST(VirtualExecutor, RunsAllButCommunicationOnAPartitionAndGivesTheSameBits) {
  const auto program = shared_program("mlp_swiglu", "commfuse", 2);
  FakeCluster cluster(1, 5);
  Device device(cluster.device(0));
  EXPECT_TRUE(
      verify(program, checked_sizes(*program)[0], {.orders = 4, .executor = executor_on(device, {.partition = 5})})
          .ok());
  EXPECT_EQ(device.partition(5).multiprocessors, 8);  // in groups of eight
  const auto count = [](const std::vector<std::string>& names, const char* name) {
    return std::ranges::count(names, name);
  };
  const test::FakeDriver& fake = cluster.device(0);
  EXPECT_GT(count(fake.issued_apart(), "product"), 0);
  EXPECT_EQ(count(fake.issued_apart(), "product"), count(fake.issued(), "product"));
  EXPECT_EQ(count(fake.issued_apart(), "function"), count(fake.issued(), "function"));
  EXPECT_LT(count(fake.issued_apart(), "move"), count(fake.issued(), "move"));
}

TEST(VirtualExecutor, ReportsATooLargePartition) {
  const auto program = shared_program("ag_gemm", "serial", 2);
  FakeCluster cluster;  // with 132 multiprocessors
  Device device(cluster.device(0));
  VirtualExecutor executor(lower(program), checked_sizes(*program)[0], device, {.partition = 133, .random_data = true});
  EXPECT_THROW(executor.run({}), std::runtime_error);
}

TEST(VirtualExecutor, IsComparedWithAnOracleOfItsOwnKind) {
  const auto program = shared_program("gemm_rs", "commfuse", 4);
  FakeCluster cluster(1, 5);
  Device device(cluster.device(0));
  const Verdict verdict =
      verify(program, checked_sizes(*program)[0],
             {.orders = 4, .executor = executor_on(device), .oracle = executor_on(device, {.one_stream = true})});
  EXPECT_TRUE(verdict.ok());
  EXPECT_GT(verdict.same_order->elements, 0);
}

TEST(VirtualExecutor, RefusesAGateWithMoreWorkThanAStreamHolds) {
  const auto program = shared_program("ag_gemm", "commfuse", 4);
  FakeCluster cluster;
  Device device(cluster.device(0));
  VirtualExecutor executor(lower(program), checked_sizes(*program)[0], device,
                           {.mode = LaunchMode::gated, .random_data = true});
  EXPECT_GT(executor.run({}).makespan, Duration{});
  try {
    executor.run({.iterations = 1000});
    FAIL() << "it was issued";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("issue by stream or graph"), std::string::npos) << error.what();
  }
}

TEST(VirtualExecutor, TracesEveryOpOfEveryRank) {
  const auto program = shared_program("gemm_rs", "commfuse", 3);
  FakeCluster cluster;
  Device device(cluster.device(0));
  VirtualExecutor executor(lower(program), checked_sizes(*program)[0], device,
                           {.mode = LaunchMode::gated, .random_data = true});
  const Execution execution = executor.run({.iterations = 2, .traced = true});
  EXPECT_EQ(execution.timeline.size(), 3 * program->ops.size());
  for (const OpSpan& span : execution.timeline) {
    EXPECT_LT(span.start, span.end);
    // Time zero is the opening of the gate; the makespan begins one call later, which takes a microsecond.
    EXPECT_LE(span.end, Instant(execution.makespan + std::chrono::microseconds(1)));
  }
}

/// Returns the names of the calls ("product", "move", ...) that a rank in the middle issues.
std::multiset<std::string> issued_by_middle(const std::shared_ptr<const Program>& program, Rank rank) {
  FakeCluster cluster;
  Device device(cluster.device(0));
  VirtualExecutor executor(lower(program), checked_sizes(*program)[0], device,
                           {.link = {.kind = LinkKind::paced, .pace = {std::chrono::microseconds(5), {1e11}}},
                            .middle = rank,
                            .random_data = true});
  const std::size_t before = cluster.device(0).issued().size();
  const Execution execution = executor.run({.traced = true});
  EXPECT_EQ(execution.timeline.size(), commands_of(lower(program), rank).size()) << program->name;
  const auto& issued = cluster.device(0).issued();
  return {issued.begin() + static_cast<std::ptrdiff_t>(before), issued.end()};
}

TEST(VirtualExecutor, AMiddleRankDoesItsOwnShareAndMovesTheDataItReceives) {
  const auto issued = issued_by_middle(shared_program("ag_gemm", "commfuse", 4), 1);
  EXPECT_EQ(issued.count("product"), 4U);
  EXPECT_EQ(issued.count("move"), 3U);
}

TEST(VirtualExecutor, EveryScheduleRunsWithOneRankInTheMiddle) {
  for (const CheckedOperation& operation : checked_operations()) {
    for (const CheckPoint& point : points_of(operation, 4, DType::bf16)) {
      const auto program = shared(program_of(point));
      EXPECT_NO_THROW(issued_by_middle(program, 1)) << program->name;
    }
  }
}

TEST(IssuePlan, OpsThatWaitForEachOtherAreNamed) {
  ProgramBuilder builder("circle", Mesh{{{"tp", 2}}});
  const Extent rows_extent{builder.dimension("rows", 2), 2};
  const Extent one_column{builder.dimension("columns", 1), 1};
  const TensorId x = builder.input_tensor("x", rows_extent, one_column, DType::fp32);
  const BufferId in = builder.buffer("in", BufferRole::input, {rows_extent.dimension, 1}, one_column, DType::fp32);
  const BufferId out = builder.buffer("out", BufferRole::output, {rows_extent.dimension, 1}, one_column, DType::fp32);
  builder.initially(builder.whole(in), x, along(builder.mesh(), 0), 0);
  ExchangeSpec sends{.shift = 1, .wire = DType::fp32};
  sends.send = {builder.whole(in)};
  builder.exchange(sends);
  ExchangeSpec receives{.shift = 1, .wire = DType::fp32};
  receives.receive = {builder.whole(out)};
  builder.exchange(receives);
  const auto program = shared(std::move(builder).build());
  const Lowered lowered = lower(program);
  const std::vector<std::vector<Command>> commands{commands_of(lowered, 0), commands_of(lowered, 1)};
  try {
    issue_plan(*program, commands);
    FAIL() << "a plan was made";
  } catch (const Stuck& stuck) {
    EXPECT_EQ(std::string(stuck.what()),
              "no op can be issued: rank 0 is stuck at op 0 (exchange), rank 1 is stuck at op 0 (exchange)");
  }
  EXPECT_EQ(nccl_findings(lowered).size(), 2U);
}

TEST(IssuePlan, AStuckRankInTheMiddleIsNamedByItsRank) {
  const auto program = shared_program("ag_gemm", "commfuse", 4);
  std::vector<std::vector<Command>> commands{commands_of(lower(program), 2)};
  commands.front().front().waits = {0};  // It waits for itself.
  try {
    issue_plan(*program, commands, {.middle = 2});
    FAIL() << "a plan was made";
  } catch (const Stuck& stuck) {
    EXPECT_NE(std::string(stuck.what()).find("rank 2 is stuck at op 0"), std::string::npos) << stuck.what();
    EXPECT_EQ(std::string(stuck.what()).find("rank 0"), std::string::npos) << stuck.what();
  }
}

}  // namespace
}  // namespace commfuse::validate
