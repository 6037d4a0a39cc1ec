// SPDX-License-Identifier: Apache-2.0
// Tests that processes that share no memory produce the interpreter's bits, and that processes that wait for each
// other, or are lost, are named. Threads represent processes: everything except MPI itself is the code that runs under
// mpirun.
#include "validate/mpi/mpi_executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "model/program/builder.h"
#include "tests/validate/mpi/threads_world.h"
#include "tests/validate/planted.h"
#include "tests/validate/reference/matrices.h"
#include "tests/validate/shift.h"
#include "validate/mpi/launch.h"
#include "validate/reference/data.h"
#include "validate/reference/verify.h"

namespace commfuse::validate {
namespace {

using namespace std::chrono_literals;
using test::matrix;
using test::on_processes;
using test::operation_named;
using test::points_of;
using test::shared;
using test::Shift;

constexpr std::chrono::nanoseconds long_patience = 1min;

/// Returns the combined verdict of the processes on a program.
Verdict verified(const Program& program, const Sizes& sizes, int orders) {
  Verdict verdict;
  const auto thrown = on_processes(program.mesh.ranks(), [&](World& world) {
    Crew crew(world, long_patience);
    const MakeExecutor processes = [&](Lowered lowered, Sizes lowered_sizes) {
      return std::make_unique<MpiExecutor>(std::move(lowered), std::move(lowered_sizes), crew);
    };
    const Verdict mine = verify(shared(program), sizes, {.orders = orders, .executor = processes});
    const Verdict combined = of_all_ranks(crew, program.mesh.ranks(), mine);
    if (crew.leads()) {
      verdict = combined;
    }
  });
  for (const std::string& sentence : thrown) {
    EXPECT_EQ(sentence, "") << program.name;
  }
  return verdict;
}

class ProcessesOnEveryRankCount : public testing::TestWithParam<std::int32_t> {};
INSTANTIATE_TEST_SUITE_P(OneToFour, ProcessesOnEveryRankCount, testing::Range(1, 5));

TEST_P(ProcessesOnEveryRankCount, EveryStrategyGivesTheInterpretersBits) {
  for (const CheckedOperation& operation : checked_operations()) {
    std::map<std::string, int> seen;
    for (const CheckPoint& point : points_of(operation, GetParam(), DType::bf16)) {
      if (++seen[std::string(point.strategy->name)] > 2) {
        continue;  // `mpirun commfuse-validate check` runs more of them
      }
      const Program program = program_of(point);
      const Verdict verdict = verified(program, checked_sizes(program)[0], 2);
      EXPECT_TRUE(verdict.ok()) << program.name;
      EXPECT_EQ(verdict.same_order.value_or(Tally{}).wrong, 0) << program.name;
      EXPECT_EQ(verdict.moved.value_or(Tally{}).wrong, 0) << program.name;
    }
  }
}

// At T0 nothing is computed, so the data that is sent is poison.
TEST(MpiExecutor, PoisonOnANarrowerWireHasTheInterpretersBits) {
  const auto& operation = operation_named("gemm_rs");
  for (const DType wire : {DType::bf16, DType::fp16}) {
    const Program program = program_of({&operation, &commfuse_strategy, {.dtype = DType::fp32}, 2, 1, {}, wire});
    const Verdict verdict = verified(program, checked_sizes(program)[0], 1);
    EXPECT_TRUE(verdict.moved.value_or(Tally{}).ok()) << name_of(wire);
    EXPECT_TRUE(verdict.same_order.value_or(Tally{}).ok()) << name_of(wire);
  }
}

TEST(MpiExecutor, AllRanksTogetherCompareAsMuchAsThreadsDo) {
  const auto& operation = checked_operations().front();
  const Program program = program_of({&operation, &commfuse_strategy, {}, 3, 1});
  const Sizes sizes = checked_sizes(program)[0];
  std::int64_t elements = 0;
  for (const Buffer& buffer : program.buffers) {
    elements += sizes.elements(buffer.rows) * sizes.elements(buffer.columns);
  }
  EXPECT_EQ(verified(program, sizes, 1).same_order.value_or(Tally{}).elements, 3 * elements);
}

TEST(MpiExecutor, MovesRowsByEveryProtocol) {
  for (const Protocol protocol : {Protocol::rendezvous, Protocol::push, Protocol::pull}) {
    Shift shift(3);
    shift.exchange(protocol);
    const auto program = shared(shift.program());
    const auto thrown = on_processes(3, [&](World& world) {
      Crew crew(world, long_patience);
      MpiExecutor executor(lower(program), Sizes{{1, 1}}, crew);
      const Matrix<float> values = matrix({{10}, {11}, {12}});
      executor.prepare({&values, 1});
      const Rectangle out{.buffer = shift.out, .rows = 1, .columns = 1};
      EXPECT_TRUE(std::isnan(executor.fetch(world.process(), out).at(0, 0)));
      const Execution execution = executor.run({.iterations = 3, .traced = true});
      EXPECT_EQ(executor.fetch(world.process(), out), matrix({{static_cast<float>(10 + (world.process() + 2) % 3)}}));
      EXPECT_EQ(execution.timeline.size(), crew.leads() ? 3U : 0U);
      EXPECT_EQ(execution.makespan > Duration{}, crew.leads());
      EXPECT_EQ(executor.holds(world.process()), true);
      EXPECT_EQ(executor.holds((world.process() + 1) % 3), false);
    });
    EXPECT_EQ(thrown, std::vector<std::string>(3));
  }
}

TEST(MpiExecutor, RanksThatWaitForEachOtherAreNamedOnAllRanks) {
  Shift shift(2);
  shift.send_only();
  shift.receive_only();
  const auto program = shared(shift.program());
  const auto thrown = on_processes(2, [&](World& world) {
    Crew crew(world, 100ms);
    MpiExecutor(lower(program), Sizes{{1, 1}}, crew).run({});
  });
  const std::string sentence =
      "no op has completed for 0.1 s: rank 0 waits at op 0 (exchange) for rank 1, rank 1 waits at op 0 (exchange) for "
      "rank 0";
  EXPECT_EQ(thrown, std::vector(2, sentence));
}

TEST(MpiExecutor, ALostProcessIsNamedAndNothingRunsAfterwards) {
  Shift shift(3);
  shift.exchange();
  const auto program = shared(shift.program());
  const auto thrown = on_processes(3, [&](World& world) {
    if (world.process() == 2) {
      return;
    }
    Crew crew(world, 100ms);
    MpiExecutor executor(lower(program), Sizes{{1, 1}}, crew);
    EXPECT_THROW(executor.run({}), Stuck);
    ASSERT_TRUE(crew.broken().has_value());
    EXPECT_FALSE(crew.agree(0, "").has_value());
    executor.run({});
  });
  const std::string sentence =
      "no op has completed for 0.1 s: process 2 does not answer, rank 0 waits before op 0 (exchange), rank 1 waits "
      "before op 0 (exchange)";
  EXPECT_EQ(thrown, (std::vector<std::string>{sentence, sentence, ""}));
}

TEST(MpiExecutor, ALostLeaderIsDetected) {
  Shift shift(2);
  shift.exchange();
  const auto program = shared(shift.program());
  const auto thrown = on_processes(2, [&](World& world) {
    if (world.process() == 1) {
      Crew crew(world, 10ms);
      MpiExecutor(lower(program), Sizes{{1, 1}}, crew).run({});
    }
  });
  EXPECT_EQ(thrown[1].rfind("process 0 has not answered for 3.0", 0), 0U) << thrown[1];
}

TEST(Crew, TheTimeOfALongStepIsNotSilenceOfTheLeader) {
  class OneStep final : public Activity {
   public:
    explicit OneStep(std::chrono::nanoseconds length) : length_(length) {}
    bool step() override {
      std::this_thread::sleep_for(length_);
      is_done_ = true;
      return true;
    }
    [[nodiscard]] bool done() const override { return is_done_; }

   private:
    std::chrono::nanoseconds length_;
    bool is_done_ = false;
  };
  const auto thrown = on_processes(2, [&](World& world) {
    const bool is_slow = world.process() == 1;  // gives the leader up after 3.02 s
    Crew crew(world, is_slow ? std::chrono::nanoseconds(10ms) : long_patience);
    OneStep activity(is_slow ? 3100ms : 0ms);
    crew.perform(2, activity);
  });
  EXPECT_EQ(thrown, std::vector<std::string>(2));
}

TEST(Crew, AllProcessesEndWithTheSameExitCode) {
  std::array<int, 3> codes{};
  std::vector<Ending> endings;
  on_processes(3, [&](World& world) {
    Crew crew(world, long_patience);
    const auto agreement = crew.agree(world.process() == 2 ? 4 : 0, world.process() == 2 ? "two is wrong" : "");
    ASSERT_TRUE(agreement.has_value());
    codes[static_cast<std::size_t>(world.process())] = agreement->code;
    if (crew.leads()) {
      endings = agreement->endings;
    }
  });
  EXPECT_EQ(codes, (std::array{4, 4, 4}));
  ASSERT_EQ(endings.size(), 1U);
  EXPECT_EQ(endings[0].process, 2);
  EXPECT_EQ(endings[0].message, "two is wrong");
}

TEST(Crew, AProcessThatFailsDuringARunEndsIt) {
  Shift shift(2);
  shift.exchange();
  const auto program = shared(shift.program());
  const auto thrown = on_processes(2, [&](World& world) {
    Crew crew(world, long_patience);
    if (world.process() == 1) {
      EXPECT_FALSE(crew.agree(1, "no memory").has_value());
      return;
    }
    MpiExecutor(lower(program), Sizes{{1, 1}}, crew).run({});
  });
  EXPECT_EQ(thrown[0], "process 1 gave up: no memory");
}

/// Returns what the leader of two processes throws while it gathers, after the other process has sent it a note.
std::string thrown_at(const Note& note) {
  const auto thrown = on_processes(2, [&](World& world) {
    Crew crew(world, long_patience);
    if (world.process() == 1) {
      crew.send(0, note);
      return;
    }
    crew.gather(2, {});
  });
  return thrown[0];
}

Payload text_payload(const std::string& text) {
  PayloadWriter writer;
  writer.put_text(text);
  return writer.take();
}

TEST(Crew, OnlyTheLeaderDecides) {
  using Kind = Note::Kind;
  for (const Kind kind : {Kind::start, Kind::over, Kind::ask, Kind::fail, Kind::verdict}) {
    EXPECT_EQ(thrown_at({.kind = kind, .body = text_payload("nonsense")}),
              "process 1 sent a message that only process 0 may send; run the same program everywhere")
        << static_cast<int>(kind);
  }
}

TEST(Crew, UnknownNotesAreRefused) {
  EXPECT_EQ(thrown_at({.kind = static_cast<Note::Kind>(200)}),
            "a message between processes has an unknown kind; run the same program everywhere");
}

TEST(Crew, TextOfAnotherProcessCannotControlTheTerminal) {
  PayloadWriter writer;
  writer.put(1);
  writer.put_text("no \x1b[31mred\nline");
  EXPECT_EQ(thrown_at({.kind = Note::Kind::finished, .body = writer.take()}),
            "process 1 gave up: no \\x1b[31mred\nline");
  const auto thrown = on_processes(2, [&](World& world) {
    Crew crew(world, long_patience);
    if (world.process() == 0) {
      crew.send(1, {.kind = Note::Kind::fail, .body = text_payload("\x1b]0;mine\a")});
      return;
    }
    crew.gather(2, {});
  });
  EXPECT_EQ(thrown[1], "\\x1b]0;mine\\x07");
}

TEST(Crew, TheFolderOfAProcessCannotControlTheTerminal) {
  const auto thrown = on_processes(2, [&](World& world) {
    Crew crew(world, 500ms);
    if (world.process() == 1) {
      PayloadWriter writer;
      writer.put(std::int64_t{1});
      writer.put_text("here \x1b[2J");
      std::optional<Parcel> parcel;
      while (!parcel || unpacked(parcel->bytes).kind != Note::Kind::ask) {
        parcel = world.receive();
      }
      crew.send(0, {.kind = Note::Kind::standing, .body = writer.take()});
      return;
    }
    crew.gather(2, {});
  });
  EXPECT_EQ(thrown[0], "no op has completed for 0.5 s: here \\x1b[2J");
}

TEST(Crew, InvalidExitCodesAreFailures) {
  for (const int code : {-1, 256}) {
    std::optional<int> agreed;
    on_processes(2, [&](World& world) {
      Crew crew(world, long_patience);
      const auto agreement = crew.agree(world.process() == 1 ? code : 0, "");
      if (crew.leads()) {
        agreed = agreement->code;
      }
    });
    EXPECT_EQ(agreed, 1);
  }
}

TEST(Crew, RemembersTheEndOfTheAgreement) {
  std::optional<std::string> reason;
  on_processes(2, [&](World& world) {
    Crew crew(world, long_patience);
    if (world.process() == 1) {
      crew.send(0, {.kind = Note::Kind::data});
      return;
    }
    EXPECT_FALSE(crew.agree(0, "").has_value());
    reason = crew.broken();
  });
  EXPECT_EQ(reason, "process 1 reported an op while nothing runs; run the same program everywhere");
}

TEST(Crew, AFloodOfNotesDoesNotStopARun) {
  class Flood final : public World {
   public:
    [[nodiscard]] int process() const override { return 0; }
    [[nodiscard]] int processes() const override { return 1; }
    void send(int /*to*/, Payload bytes) override { parcels_.push_back(std::move(bytes)); }
    std::optional<Parcel> receive() override {
      if (parcels_.empty()) {
        return Parcel{0, packed({.kind = Note::Kind::beat})};
      }
      Parcel parcel{0, std::move(parcels_.front())};
      parcels_.pop_front();
      return parcel;
    }
    [[nodiscard]] std::string library() const override { return "flood"; }
    [[nodiscard]] std::string host() const override { return "here"; }
    void close() override {}
    [[noreturn]] void abort(int /*code*/) override { std::terminate(); }

   private:
    std::deque<Payload> parcels_;
  };
  Flood world;
  Crew crew(world, long_patience);
  EXPECT_EQ(crew.gather(1, Payload(3)), std::vector<Payload>{Payload(3)});
}

/// True if processes that run the program on integers, under this seed of chaos, end with wrong contents.
bool is_caught_on_processes(const Program& program, const Sizes& sizes, std::uint64_t seed) {
  bool all_right = true;
  on_processes(program.mesh.ranks(), [&](World& world) {
    Crew crew(world, 500ms);
    MpiExecutor executor(lower(shared(program)), sizes, crew);
    const auto [inputs, expected] = integer_data(program, sizes, 1);
    executor.prepare(inputs);
    bool is_right = true;
    try {
      executor.run({.functions = Functions::integer, .order = seed, .iterations = 1 + static_cast<int>(seed % 2)});
      is_right = test::holds_its_final_contents(executor, expected);
    } catch (const Stuck&) {
      is_right = false;
    }
    PayloadWriter writer;
    writer.put(is_right);
    if (crew.broken()) {
      all_right = false;
      return;
    }
    for (const Payload& report : crew.gather(program.mesh.ranks(), writer.take())) {
      all_right = PayloadReader(report).get<bool>() && all_right;
    }
  });
  return !all_right;
}

TEST(MpiExecutor, CatchesPlantedMistakesOfEveryKind) {
  std::array<test::Caught, 5> kinds;
  for (const char* name : {"ag_gemm", "gemm_rs"}) {
    const CheckedOperation& operation = operation_named(name);
    test::plant_in(program_of({&operation, &commfuse_strategy, {.slices = 2}, 3, 1}), is_caught_on_processes, 20,
                   kinds);
  }
  test::expect_caught(kinds, 1);
}

TEST(Note, RefusesMatricesOfImpossibleSize) {
  for (const auto& [rows, columns] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{-1, 4}, {4, -1}, {std::int64_t{1} << 40U, 4}, {4, 2}}) {
    PayloadWriter writer;
    writer.put(rows);
    writer.put(columns);
    writer.put(0.0F);
    const Payload bytes = writer.take();
    EXPECT_THROW(PayloadReader(bytes).get_matrix(DType::fp32), std::runtime_error);
  }
}

TEST(MpiExecutor, RefusesNotesOfUnknownOps) {
  Shift shift(2);
  shift.exchange();
  const auto program = shared(shift.program());
  for (const OpId op : {OpId{-1}, OpId{1 << 30}}) {
    const auto thrown = on_processes(2, [&](World& world) {
      Crew crew(world, long_patience);
      if (world.process() == 1) {
        crew.send(0, {.kind = Note::Kind::posted, .op = op});
        return;
      }
      MpiExecutor(lower(program), Sizes{{1, 1}}, crew).run({});
    });
    EXPECT_EQ(thrown[0], "process 1 reported an unknown op; run the same program everywhere");
  }
}

TEST(Launch, RecognizesTheLaunchersOfMpi) {
  const auto started = [](std::map<std::string, const char*> variables) {
    return started_by_mpi([&](const char* name) {
      const auto variable = variables.find(name);
      return variable == variables.end() ? nullptr : variable->second;
    });
  };
  EXPECT_EQ(started({}), std::nullopt);
  EXPECT_EQ(started({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}}), (Started{2, 4}));
  EXPECT_EQ(started({{"PMI_RANK", "0"}, {"PMI_SIZE", "8"}}), (Started{0, 8}));
  EXPECT_EQ(started({{"PMIX_RANK", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}}), (Started{1, 2}));
  EXPECT_EQ(started({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_NUM_TASKS", "1"}}), std::nullopt);
  EXPECT_EQ(started({{"PMI_RANK", "x"}, {"PMI_SIZE", "8"}}), std::nullopt);
}

}  // namespace
}  // namespace commfuse::validate
