// SPDX-License-Identifier: Apache-2.0
// Tests executors with one device per rank, which access each other's memory by copies and flags. They compute
// identical bits in every order that the streams of all ranks allow. If one kind of wait is missing, some order reveals
// it.
#include "validate/cuda/peer_executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <string>
#include <thread>

#include "model/program/builder.h"
#include "tests/validate/cuda/fake_peers.h"
#include "tests/validate/cuda/ring_program.h"
#include "tests/validate/gather_in_place.h"
#include "tests/validate/reference/matrices.h"
#include "tests/validate/thrown_by.h"
#include "validate/bench/bench.h"
#include "validate/reference/check_point.h"
#include "validate/reference/data.h"
#include "validate/reference/interpreter.h"
#include "validate/reference/verify.h"

namespace commfuse::validate {
namespace {

using test::FakeCluster;
using test::FakeMachine;
using test::FakePeers;
using test::operation_named;
using test::points_of;
using test::ring;
using test::shared;
using test::thrown_by;

/// Selects the waits to omit, by the number of their flag.
using OmittedWaits = std::function<bool(std::int64_t flag)>;

/// Runs `work` on every rank, in a separate thread with a separate device. Rethrows the first exception.
template <class Work>
void on_ranks(int ranks, std::uint64_t seed, const OmittedWaits& omitted, const Work& work) {
  FakeCluster cluster(ranks, seed);
  FakeMachine machine(ranks);
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(ranks));
  std::vector<std::jthread> threads;
  threads.reserve(failures.size());
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        FakePeers peers(machine, cluster, rank);
        peers.omit_waits(omitted);
        PeerWindows windows(peers, rank, ranks, [&](const MemoryKey& mine) { return machine.exchange(rank, mine); });
        Device device(cluster.device(rank));
        work(rank, device, windows);
      } catch (...) {
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  threads.clear();
  for (const std::exception_ptr& failure : failures) {
    if (failure) {
      std::rethrow_exception(failure);
    }
  }
}

/// Returns the combined verdict of the ranks on a program.
Verdict verified(const std::shared_ptr<const Program>& program, LaunchMode mode, std::uint64_t seed = 11,
                 const OmittedWaits& omitted = {}) {
  std::vector<Verdict> verdicts(static_cast<std::size_t>(program->mesh.ranks()));
  on_ranks(program->mesh.ranks(), seed, omitted, [&](int rank, Device& device, PeerWindows& windows) {
    VerifyOptions mine{.orders = 2};
    mine.executor = [&](Lowered lowered, Sizes sizes) {
      return std::make_unique<PeerExecutor>(std::move(lowered), std::move(sizes), device, windows,
                                            RankOptions{.mode = mode, .patience = std::chrono::seconds(20)});
    };
    verdicts[static_cast<std::size_t>(rank)] = verify(program, checked_sizes(*program)[0], mine);
  });
  Verdict combined = verdicts.front();
  for (std::size_t rank = 1; rank < verdicts.size(); ++rank) {
    combined += verdicts[rank];
  }
  return combined;
}

class PeersOnEveryRankCount : public testing::TestWithParam<std::int32_t> {};
INSTANTIATE_TEST_SUITE_P(OneToFour, PeersOnEveryRankCount, testing::Range(1, 5));

TEST_P(PeersOnEveryRankCount, EveryKindOfScheduleGivesTheInterpretersBits) {
  int run = 0;
  for (const CheckedOperation& operation : checked_operations()) {
    for (const CheckPoint& point : points_of(operation, GetParam(), DType::bf16)) {
      const auto program = shared(program_of(point));
      const Verdict verdict = verified(program, LaunchMode::stream);
      EXPECT_TRUE(verdict.ok()) << program->name;
      EXPECT_TRUE(verdict.same_order.has_value()) << program->name;  // T1 covers sums of collectives too
      ++run;
    }
  }
  EXPECT_GT(run, GetParam() == 1 ? 5 : 20);
}

TEST(PeerExecutor, EightRanksScatterGatherAndSumToTheInterpretersBits) {
  for (const char* name : {"ag_gemm", "gemm_rs"}) {
    for (const Strategy* strategy : {&serial_strategy, &commfuse_strategy, &async_tp_strategy}) {
      const auto program = shared(program_of({&operation_named(name), strategy, {}, 8, 1}));
      EXPECT_TRUE(verified(program, LaunchMode::stream).ok()) << program->name;
    }
  }
}

TEST(PeerExecutor, WiresOfEightBitsGiveTheInterpretersBits) {
  int run = 0;
  for (const char* name : {"ag_gemm", "gemm_rs", "mlp_swiglu"}) {
    for (CheckPoint point : points_of(operation_named(name), 3, DType::bf16)) {
      point.wire = DType::fp8;
      const auto program = shared(program_of(point));
      if (peer_findings(*program).empty()) {  // nothing converts pulled data
        EXPECT_TRUE(verified(program, LaunchMode::stream).ok()) << program->name;
        ++run;
      }
    }
  }
  EXPECT_GT(run, 5);
}

TEST(PeerExecutor, GivesTheSameBitsBehindAGate) {
  const auto program = shared(program_of({&operation_named("mlp_swiglu"), &commfuse_strategy, {}, 4, 1}));
  EXPECT_TRUE(verified(program, LaunchMode::gated).ok());
}

/// Runs `iterations` of a program on the interpreter's data; true if all ranks end with the interpreter's contents.
bool ends_as_interpreted(const std::shared_ptr<const Program>& program, int iterations, std::uint64_t seed,
                         const OmittedWaits& omitted = {}) {
  const Sizes sizes = checked_sizes(*program)[0];
  const std::vector<Matrix<float>> data = input_data(*program, sizes, DataKind::random, 3);
  Interpreter interpreter(lower(program), sizes);
  interpreter.prepare(data);
  interpreter.run({.iterations = iterations});
  std::atomic<bool> same = true;
  on_ranks(program->mesh.ranks(), seed, omitted, [&](int rank, Device& device, PeerWindows& windows) {
    PeerExecutor executor(lower(program), sizes, device, windows, {.patience = std::chrono::seconds(20)});
    executor.prepare(data);
    executor.run({.iterations = iterations});
    for (const Content& content : program->final) {
      const Rectangle area = rectangle_of(*program, content.here, program->mesh.coordinates(rank));
      const Matrix<float> mine = executor.fetch(rank, area);
      const Matrix<float> theirs = interpreter.fetch(rank, area);
      same = same && std::ranges::equal(mine.values(), theirs.values());
    }
  });
  return same;
}

/// True if some order of the streams reveals that these waits are missing.
bool is_detected(const std::shared_ptr<const Program>& program, const OmittedWaits& omitted) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    try {
      if (!verified(program, LaunchMode::stream, seed, omitted).ok()) {
        return true;
      }
    } catch (const Stuck&) {
      return true;
    }
  }
  return false;
}

/// Selects the waits for the flags that `pick` adds for every exchange, or every collective, of the program.
template <class Pick>
OmittedWaits flags_of(const Program& program, OpKind kind, const Pick& pick) {
  std::vector<std::int64_t> numbers;
  const PeerFlags flags(program);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    if (program.ops[i].kind == kind) {
      pick(flags, OpId{static_cast<std::int32_t>(i)}, numbers);
    }
  }
  return [numbers](std::int64_t flag) { return std::ranges::find(numbers, flag) != numbers.end(); };
}

using Numbers = std::vector<std::int64_t>;
const auto arrivals = [](const PeerFlags& flags, OpId op, Numbers& to) { to.push_back(flags.arrived(op)); };
const auto readiness = [](const PeerFlags& flags, OpId op, Numbers& to) { to.push_back(flags.ready(op)); };

class MissingWaits : public testing::TestWithParam<Protocol> {};
INSTANTIATE_TEST_SUITE_P(OfEveryProtocol, MissingWaits,
                         testing::Values(Protocol::rendezvous, Protocol::push, Protocol::pull),
                         [](const auto& protocol) {
                           return protocol.param == Protocol::push   ? "Push"
                                  : protocol.param == Protocol::pull ? "Pull"
                                                                     : "Rendezvous";
                         });

TEST_P(MissingWaits, ForArrivalsAreDetected) {
  const auto program = shared(ring(4, GetParam()));
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    EXPECT_TRUE(verified(program, LaunchMode::stream, seed).ok());
  }
  EXPECT_TRUE(is_detected(program, flags_of(*program, OpKind::exchange, arrivals)));
}

TEST(PeerExecutor, RingsThatAddUpKeepTheirBitsInEveryOrder) {
  const auto program = shared(program_of({&operation_named("gemm_rs"), &commfuse_strategy, {}, 4, 1}));
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    EXPECT_TRUE(verified(program, LaunchMode::stream, seed).ok()) << seed;
  }
}

// Uses a ring that adds, because it reuses its buffers repeatedly. Most other receivers are ready before any rank can
// send to them, so a missing wait would change nothing.
TEST(PeerExecutor, DetectsAMissingWaitForTheReceiver) {
  const auto program = shared(program_of({&operation_named("gemm_rs"), &commfuse_strategy, {}, 4, 1}));
  EXPECT_TRUE(verified(program, LaunchMode::stream).ok());
  EXPECT_TRUE(is_detected(program, flags_of(*program, OpKind::exchange, readiness))) << program->name;
}

TEST(PeerExecutor, ConvertsToTheWireAndBack) {
  for (const Protocol protocol : {Protocol::rendezvous, Protocol::push}) {
    const auto program = shared(ring(3, protocol, DType::fp32, DType::bf16));
    EXPECT_TRUE(ends_as_interpreted(program, 2, 3));
  }
  const Program pulled = ring(3, Protocol::pull, DType::fp32, DType::bf16);
  ASSERT_FALSE(peer_findings(pulled).empty());
  EXPECT_NE(peer_findings(pulled).front().find("pulls fp32 with wire dtype bf16"), std::string::npos)
      << peer_findings(pulled).front();
}

TEST(PeerExecutor, RefusesTransfersThatStackTwoDtypes) {
  ProgramBuilder builder("by hand", Mesh{{{"tp", 2}}});
  const Extent rows{builder.dimension("rows", 1), 1};
  const Extent columns{builder.dimension("columns", 1), 1};
  const BufferId fine = builder.buffer("fine", BufferRole::scratch, rows, columns, DType::fp32);
  const BufferId coarse = builder.buffer("coarse", BufferRole::scratch, rows, columns, DType::bf16);
  builder.exchange({.send = {builder.whole(fine), builder.whole(fine)},
                    .receive = {builder.whole(fine), builder.whole(coarse)},
                    .wire = DType::fp32});
  EXPECT_EQ(peer_findings(std::move(builder).build()),
            std::vector<std::string>{
                "op 0 (exchange) stacks buffers of several dtypes; a transfer between GPUs needs a single dtype"});
}

// A rank's own rows pass through the wire's dtype like all others, as in NCCL.
TEST(PeerExecutor, RoundsItsOwnRowsOfAGatherInPlace) {
  for (const DType wire : {DType::bf16, DType::fp16, DType::fp32}) {
    const auto program = shared(test::gather_in_place(3, DType::fp32, wire));
    EXPECT_TRUE(ends_as_interpreted(program, 2, 3)) << name_of(wire);
  }
}

bool has_all_reduce(const Program& program) {
  return std::ranges::any_of(program.ops, [&](const Op& op) {
    return op.kind == OpKind::collective &&
           std::get<CollectiveShape>(program.shapes[op.shape]).kind == CollectiveKind::all_reduce;
  });
}

/// Selects the waits for a flag of each member of all collectives of three ranks.
template <class Pick>
OmittedWaits flags_of_members(const Program& program, const Pick& pick) {
  return flags_of(program, OpKind::collective, [&](const PeerFlags& flags, OpId op, Numbers& to) {
    for (std::size_t member = 0; member < 3; ++member) {
      to.push_back(pick(flags, op, member));
    }
  });
}

TEST(PeerExecutor, DetectsMissingWaitsOfCollectives) {
  const auto scattered = shared(program_of({&operation_named("gemm_rs"), &serial_strategy, {}, 3, 1}));
  EXPECT_TRUE(verified(scattered, LaunchMode::stream).ok());
  EXPECT_TRUE(
      is_detected(scattered, flags_of_members(*scattered, [](const PeerFlags& flags, OpId op, std::size_t member) {
                    return flags.open(op, member);
                  })));
  int reduced = 0;
  for (const CheckedOperation& operation : checked_operations()) {
    const auto program = shared(program_of({&operation, &serial_strategy, {}, 3, 1}));
    if (!has_all_reduce(*program)) {
      continue;
    }
    ++reduced;
    EXPECT_TRUE(verified(program, LaunchMode::stream).ok()) << program->name;
    EXPECT_TRUE(
        is_detected(program, flags_of_members(*program, [](const PeerFlags& flags, OpId op,
                                                           std::size_t member) { return flags.done(op, member, 3); })))
        << program->name;
  }
  EXPECT_GT(reduced, 0);
}

TEST(PeerExecutor, SeveralIterationsKeepTheirBitsInEveryOrder) {
  for (const Protocol protocol : {Protocol::rendezvous, Protocol::push, Protocol::pull}) {
    const auto program = shared(ring(4, protocol));
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      EXPECT_TRUE(ends_as_interpreted(program, 3, seed)) << program->name;
    }
  }
  for (const char* name : {"ag_gemm", "gemm_rs"}) {
    const auto program = shared(program_of({&operation_named(name), &serial_strategy, {}, 4, 1}));
    EXPECT_TRUE(ends_as_interpreted(program, 3, 5)) << program->name;
  }
}

TEST(PeerExecutor, ARankThatNeverComesEndsTheOthers) {
  const std::string abandoned =
      "cuda-peer gave up an earlier run, and ranks may still copy into each other's memory; restart all ranks";
  const auto program = shared(program_of({&operation_named("gemm_rs"), &serial_strategy, {}, 3, 1}));
  const Sizes sizes = checked_sizes(*program)[0];
  std::atomic<int> stuck = 0;
  const auto work = [&](int rank, Device& device, PeerWindows& windows) {
    PeerExecutor executor(lower(program), sizes, device, windows, {.patience = std::chrono::milliseconds(200)});
    executor.prepare(input_data(*program, sizes, DataKind::random, 3));
    if (rank == 1) {
      throw std::logic_error("rank 1 has gone");
    }
    EXPECT_THROW(executor.run({}), Stuck);
    // The flags of this window let every wait pass from now on: a run would read data that no rank has sent.
    EXPECT_EQ(thrown_by([&] { executor.run({}); }), abandoned);
    EXPECT_EQ(thrown_by([&] { const PeerLease next_lease(windows, {.flags = 1, .data = {1}}); }), abandoned);
    ++stuck;
  };
  EXPECT_THROW(on_ranks(3, 1, {}, work), std::logic_error);
  EXPECT_EQ(stuck, 2);
}

TEST(PeerExecutor, EveryOpOfABenchFitsBehindAGate) {
  for (const MicroProgram& micro : micro_programs({.ranks = 2, .parts = {BenchPart::neighbours}, .gpu = true})) {
    Sizes sizes = micro.sizes;
    std::ranges::fill(sizes.block, 1);  // the values do not matter
    on_ranks(2, 1, {}, [&](int /*rank*/, Device& device, PeerWindows& windows) {
      PeerExecutor executor(lower(micro.program), sizes, device, windows,
                            {.mode = LaunchMode::gated, .random_data = true, .patience = std::chrono::seconds(20)});
      EXPECT_NO_THROW(executor.run({.sum_order = SumOrder::blocked, .iterations = 2, .traced = true}));
    });
  }
}

TEST(PeerWindows, AreReusedAndGrowOnceAllRanksHaveClosedThem) {
  on_ranks(3, 1, {}, [&](int rank, Device& /*device*/, PeerWindows& windows) {
    Address first = 0;
    {
      const PeerLease lease(windows, {.flags = 10, .data = {1000}});
      first = lease.window().at[static_cast<std::size_t>(rank)];
      const PeerLease second(windows, {.flags = 10, .data = {1000}});
      EXPECT_NE(second.window().at[static_cast<std::size_t>(rank)], first);
      lease.window().iterations = 7;
    }
    const PeerLease next_lease(windows, {.flags = 20, .data = {2000}});
    EXPECT_EQ(next_lease.window().at[static_cast<std::size_t>(rank)], first);
    EXPECT_EQ(next_lease.window().iterations, 7U);
    const PeerLease larger(windows, {.flags = 10, .data = {std::int64_t{5} << 20U}});
    EXPECT_GE(larger.window().size.data.count, std::int64_t{5} << 20U);
    EXPECT_EQ(larger.window().iterations, 0U);
  });
}

std::string plan_in_words(const PeerPlan& plan) {
  constexpr std::array<const char*, 12> words{"record", "wait",  "compute", "signal", "await", "pack",
                                              "send",   "fetch", "unpack",  "take",   "add",   "place"};
  std::string text;
  for (const PeerStep& step : plan.steps) {
    if (step.command >= 0 && step.kind != PeerStep::Kind::compute) {
      text += std::string(words[static_cast<std::size_t>(step.kind)]) +
              (step.peer >= 0 ? " " + std::to_string(step.peer) : "") + "; ";
    }
  }
  return text;
}

TEST(PeerPlan, CollectivesMeetTwice) {
  const auto program = shared(program_of({&operation_named("gemm_rs"), &serial_strategy, {}, 3, 1}));
  const std::vector<Command> commands = commands_of(lower(program), 1);
  EXPECT_EQ(plan_in_words(peer_plan(*program, PeerFlags(*program), 1, commands)),
            "signal 0; signal 2; await 0; await 2; take; add; signal 0; signal 2; await 0; await 2; place; ");
}

}  // namespace
}  // namespace commfuse::validate
