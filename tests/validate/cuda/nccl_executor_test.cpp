// SPDX-License-Identifier: Apache-2.0
// Tests executors with one device per rank and NCCL's messages between them: they compute the interpreter's bits, in an
// order that cannot hang.
#include "validate/cuda/nccl_executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <thread>

#include "tests/validate/cuda/fake_driver.h"
#include "tests/validate/cuda/ring_program.h"
#include "tests/validate/reference/matrices.h"
#include "validate/reference/check_point.h"
#include "validate/reference/verify.h"

namespace commfuse::validate {
namespace {

using test::FakeCluster;
using test::FakeNetwork;
using test::operation_named;
using test::points_of;
using test::shared;

/// Forms in which messages are sent.
enum class Way : std::uint8_t {
  messages,
  puts,
  puts_without_waits,  ///< Wrong: no rank waits for a signal.
};

/// Returns the combined verdict of the ranks on a program; each rank is a thread with its own device.
Verdict verified(const std::shared_ptr<const Program>& program, const VerifyOptions& options, LaunchMode mode,
                 Way way = Way::messages) {
  const int ranks = program->mesh.ranks();
  FakeCluster cluster(ranks, 11);
  std::vector<Verdict> verdicts(static_cast<std::size_t>(ranks));
  std::vector<std::jthread> threads;
  threads.reserve(verdicts.size());
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      FakeNetwork network(cluster, rank, ranks, {.puts = way != Way::messages});
      if (way == Way::puts_without_waits) {
        network.omit_waits();
      }
      Communicators communicators(network);
      Device device(cluster.device(rank));
      VerifyOptions mine = options;
      mine.executor = [&](Lowered lowered, Sizes sizes) {
        return std::make_unique<NcclExecutor>(std::move(lowered), std::move(sizes), device, communicators,
                                              RankOptions{.mode = mode});
      };
      Verdict& verdict = verdicts[static_cast<std::size_t>(rank)];
      try {
        verdict = verify(program, checked_sizes(*program)[0], mine);
      } catch (const std::runtime_error&) {
        if (way != Way::puts_without_waits) {
          throw;
        }
        verdict.integers.wrong = 1;  // A peer that waits for nothing may already have freed its window.
      }
      EXPECT_TRUE(way == Way::puts_without_waits || network.left_over() == 0) << program->name;
    });
  }
  threads.clear();
  Verdict combined = verdicts.front();
  for (std::size_t rank = 1; rank < verdicts.size(); ++rank) {
    combined += verdicts[rank];
  }
  return combined;
}

class GpusOnEveryRankCount : public testing::TestWithParam<std::int32_t> {};
INSTANTIATE_TEST_SUITE_P(TwoToFour, GpusOnEveryRankCount, testing::Range(2, 5));

TEST_P(GpusOnEveryRankCount, EveryKindOfScheduleGivesTheInterpretersBits) {
  int run = 0;
  for (const CheckedOperation& operation : checked_operations()) {
    for (const CheckPoint& point : points_of(operation, GetParam(), DType::bf16)) {
      const auto program = shared(program_of(point));
      const Verdict verdict = verified(program, {.orders = 2, .library_sums = true}, LaunchMode::stream);
      EXPECT_TRUE(verdict.ok()) << program->name;
      EXPECT_NE(verdict.same_order.has_value(), has_collective_sums(*program)) << program->name;
      ++run;
    }
  }
  EXPECT_GT(run, 20);
}

TEST_P(GpusOnEveryRankCount, PutsAndSignalsGiveTheInterpretersBits) {
  for (const CheckedOperation& operation : checked_operations()) {
    for (const CheckPoint& point : points_of(operation, GetParam(), DType::bf16)) {
      const auto program = shared(program_of(point));
      const Verdict verdict = verified(program, {.orders = 2, .library_sums = true}, LaunchMode::stream, Way::puts);
      EXPECT_TRUE(verdict.ok()) << program->name;
    }
  }
}

/// Two-sided messages wait for their receivers even where the program pushes; puts do not, unless they write to
/// scratch.
TEST(NcclExecutor, RingsOfEveryProtocolGiveTheInterpretersBits) {
  for (const Protocol protocol : {Protocol::rendezvous, Protocol::push, Protocol::pull}) {
    for (const DType stored : {DType::bf16, DType::fp32}) {
      for (const std::int32_t ranks : {2, 3, 4}) {
        const auto program = shared(test::ring(ranks, protocol, stored));
        for (const Way way : {Way::messages, Way::puts}) {
          EXPECT_TRUE(verified(program, {.orders = 2}, LaunchMode::stream, way).ok())
              << static_cast<int>(protocol) << static_cast<int>(way) << ranks << name_of(stored);
        }
      }
    }
  }
}

TEST(NcclExecutor, StatesTheFailureOfTheNetworkAsItIs) {
  const auto program = shared(test::ring(2, Protocol::rendezvous, DType::bf16));
  FakeCluster cluster(2, 11);
  std::vector<std::string> messages(2);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      FakeNetwork network(cluster, rank, 2, {});
      network.fail("NCCL: unhandled system error");
      Communicators communicators(network);
      Device device(cluster.device(rank));
      VerifyOptions options;
      options.executor = [&](Lowered lowered, Sizes sizes) {
        return std::make_unique<NcclExecutor>(std::move(lowered), std::move(sizes), device, communicators,
                                              RankOptions{.mode = LaunchMode::stream});
      };
      try {
        static_cast<void>(verify(program, checked_sizes(*program)[0], options));
      } catch (const std::runtime_error& error) {
        messages[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  threads.clear();
  EXPECT_EQ(messages, std::vector<std::string>(2, "NCCL: unhandled system error"));
}

TEST(NcclExecutor, WiresOfEightBitsGiveTheInterpretersBits) {
  for (const char* name : {"ag_gemm", "gemm_rs", "mlp_swiglu"}) {
    const auto& operation = operation_named(name);
    for (CheckPoint point : points_of(operation, 3, DType::bf16)) {
      point.wire = DType::fp8;
      const auto program = shared(program_of(point));
      for (const Way way : {Way::messages, Way::puts}) {
        EXPECT_TRUE(verified(program, {.orders = 1, .library_sums = true}, LaunchMode::stream, way).ok())
            << program->name;
      }
    }
  }
}

TEST(NcclPlan, SumsInFp8AreRefused) {
  const auto& gemm_rs = operation_named("gemm_rs");
  Program program = program_of({&gemm_rs, &serial_strategy, {}, 2, 1});
  EXPECT_EQ(nccl_findings(lower(shared(program))), std::vector<std::string>{});
  for (Shape& shape : program.shapes) {
    if (auto* collective = std::get_if<CollectiveShape>(&shape)) {
      collective->wire = DType::fp8;
    }
  }
  const std::vector<std::string> findings = nccl_findings(lower(shared(program)));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].find("sums in fp8"), std::string::npos) << findings[0];
}

TEST(NcclPlan, PushesWaitForTheReceiverOnlyIfItHasNoRoom) {
  const Lowered lowered = lower(shared(test::ring(3, Protocol::push)));
  const auto ready = [&](bool has_room) {
    const std::vector<PutSignals> signals = put_signals(lowered, 0, [&](Rank, const Command&) { return has_room; });
    return std::ranges::count_if(signals, &PutSignals::says_ready);
  };
  EXPECT_EQ(ready(true), 0);
  EXPECT_EQ(ready(false), 2);
}

TEST(NcclExecutor, PutsWithoutWaitsGiveOtherBits) {
  const CheckedOperation& mlp = operation_named("mlp_swiglu");
  const auto program = shared(program_of({&mlp, &commfuse_strategy, {}, 4, 1}));
  EXPECT_TRUE(verified(program, {.orders = 4}, LaunchMode::stream, Way::puts).ok());
  EXPECT_TRUE(verified(program, {.orders = 4}, LaunchMode::gated, Way::puts).ok());
  EXPECT_FALSE(verified(program, {.orders = 4}, LaunchMode::stream, Way::puts_without_waits).ok());
}

TEST(NcclExecutor, SumsOfNcclAreRightThoughTheirBitsAreNotTheInterpreters) {
  const CheckedOperation& gemm_rs = operation_named("gemm_rs");
  const auto program = shared(program_of({&gemm_rs, &serial_strategy, {}, 4, 1}));
  ASSERT_TRUE(has_collective_sums(*program));
  // The double rounds to bf16 at every hop, as NCCL does; compared with the interpreter's bits, its sums look wrong.
  const Verdict by_bits = verified(program, {.orders = 2}, LaunchMode::stream);
  EXPECT_GT(by_bits.same_order->wrong, 0);
  EXPECT_TRUE(by_bits.integers.ok());
  EXPECT_TRUE(by_bits.bound.ok());
  const Verdict verdict = verified(program, {.orders = 2, .library_sums = true}, LaunchMode::stream);
  EXPECT_TRUE(verdict.ok());
  EXPECT_FALSE(verdict.same_order.has_value());
  EXPECT_GT(verdict.bound.worst, 0.0);
}

TEST(NcclExecutor, SumsOfTwoRanksRequireEqualBits) {
  const CheckedOperation& gemm_rs = operation_named("gemm_rs");
  const auto program = shared(program_of({&gemm_rs, &serial_strategy, {}, 2, 1}));
  const Verdict verdict = verified(program, {.orders = 2, .library_sums = true}, LaunchMode::stream);
  ASSERT_TRUE(verdict.same_order.has_value());
  EXPECT_TRUE(verdict.ok());
}

TEST(NcclExecutor, GivesTheSameBitsBehindAGateAndByGraph) {
  const CheckedOperation& mlp = operation_named("mlp_swiglu");
  const auto program = shared(program_of({&mlp, &commfuse_strategy, {}, 4, 1}));
  EXPECT_TRUE(verified(program, {.orders = 2}, LaunchMode::gated).ok());
  EXPECT_TRUE(verified(program, {.orders = 2}, LaunchMode::graph).ok());
}

/// On two ranks, each rank sends to the other and receives from it in one op.
TEST(NcclPlan, SignalsOfOneRankAreCountedTogether) {
  const CheckedOperation& ag = operation_named("ag_gemm");
  const auto program = shared(program_of({&ag, &commfuse_strategy, {}, 2, 1}));
  const Lowered lowered = lower(program);
  const std::vector<Command> commands = commands_of(lowered, 0);
  const std::vector<PutSignals> signals = put_signals(lowered, 0, [](Rank, const Command&) { return false; });
  ASSERT_EQ(signals.size(), commands.size());
  int exchanges = 0;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const bool is_exchange = commands[i].kind == OpKind::exchange;
    exchanges += is_exchange ? 1 : 0;
    // The only peer raises two signals: that it is ready, and that its data has arrived.
    EXPECT_EQ(signals[i], (is_exchange ? PutSignals{true, 1, 1} : PutSignals{}));
  }
  EXPECT_GT(exchanges, 0);
}

TEST(NcclPlan, NoGeneratedScheduleDeadlocksInOrderOfIssue) {
  std::vector<std::string> stuck;
  for (const std::int32_t ranks : {2, 3, 4, 8}) {
    for (const CheckedOperation& operation : checked_operations()) {
      for (const CheckPoint& point : points_of(operation, ranks, DType::bf16)) {
        const auto program = shared(program_of(point));
        for (const std::string& sentence : nccl_findings(lower(program))) {
          stuck.push_back(program->name + ": " + sentence);
        }
      }
    }
  }
  EXPECT_EQ(stuck, std::vector<std::string>{});
}

TEST(NcclPlan, AllRanksCommunicateInTheSameOrder) {
  for (const CheckedOperation& operation : checked_operations()) {
    for (const CheckPoint& point : points_of(operation, 4, DType::bf16)) {
      const auto program = shared(program_of(point));
      const Lowered lowered = lower(program);
      std::vector<NcclMembers> first;
      for (Rank rank = 0; rank < 4; ++rank) {
        const std::vector<Command> commands = commands_of(lowered, rank);
        const NcclPlan plan = nccl_plan(*program, commands);
        if (rank == 0) {
          first = plan.communicators;
        }
        EXPECT_EQ(plan.communicators, first) << program->name;
        std::int32_t last = -1;
        for (const NcclStep& step : plan.steps) {
          if (step.kind == NcclStep::Kind::exchange || step.kind == NcclStep::Kind::collective) {
            const auto op = static_cast<std::int32_t>(commands[static_cast<std::size_t>(step.command)].op);
            EXPECT_GT(op, last) << program->name;  // by op: the same order on all ranks
            last = op;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace commfuse::validate
