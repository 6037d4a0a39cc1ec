// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "model/config_error.h"
#include "tests/sim/random_program.h"
#include "tests/sim/simulated.h"

namespace commfuse::test {
namespace {

using namespace std::chrono_literals;

struct Replayed {
  std::shared_ptr<const Program> program;
  Lowered lowered = lower(program);
  Tape tape = tape_of(lowered);

  explicit Replayed(Program made) : program(std::make_shared<const Program>(std::move(made))) {}

  Makespans run(const Costs& costs, Recorder& recorder, Replay::Ranks ranks = Replay::Ranks::all) const {
    return Replay{}.run(*program, tape, costs, ranks, &recorder);
  }
  Duration engine(const Costs& costs, Recorder& recorder) const {
    Engine{}.run(plan_of(lower(program)), costs, recorder);
    return recorder.makespan().time_since_epoch();
  }
};

bool same_summary(const RankSummary& a, const RankSummary& b) {
  return a.has_essential == b.has_essential && a.last_end == b.last_end && a.busy == b.busy && a.covered == b.covered &&
         (!a.has_essential || (a.first_essential == b.first_essential && a.last_essential == b.last_essential));
}

bool has_self_paired_exchange(const Tape& tape) {
  return std::any_of(tape.instructions.begin(), tape.instructions.end(),
                     [](const Tape::Instruction& instruction) { return instruction.kind == Tape::Kind::exchange; });
}

TEST(Replay, MatchesTheEngineOnTenThousandRandomPrograms) {
  std::mt19937_64 random(1);
  int tapes_of_single_ranks = 0;
  int folded_to_one_rank = 0;
  int mixed = 0;
  int all_self_paired = 0;
  for (int i = 0; i < 10'000; ++i) {
    const Replayed simulated(random_program(random));
    const Costs costs = random_costs(*simulated.program, random);
    Recorder by_engine(Recorder::Keep::timeline);
    Recorder by_replay(Recorder::Keep::timeline);
    const Duration makespan = simulated.engine(costs, by_engine);
    ASSERT_EQ(simulated.run(costs, by_replay).actual, makespan) << "program " << i;
    ASSERT_EQ(by_replay.timeline(), by_engine.timeline()) << "program " << i;
    tapes_of_single_ranks += simulated.tape.all_ranks ? 0 : 1;
    if (has_self_paired_exchange(simulated.tape)) {
      (simulated.tape.instructions.size() == simulated.program->ops.size() ? all_self_paired : mixed) += 1;
    }

    Recorder summaries;
    const Makespans bounds = simulated.run(costs, summaries);
    for (Rank rank = 0; rank < summaries.ranks(); ++rank) {
      ASSERT_TRUE(same_summary(summaries.summary(rank), by_engine.summary(rank))) << "program " << i;
    }
    ASSERT_EQ(Replay{}.makespan(*simulated.program, simulated.tape, costs, Replay::Ranks::all), makespan);
    ASSERT_EQ(bounds.ideal, simulated.engine(with_free_communication(*simulated.program, costs), by_engine));
    ASSERT_EQ(bounds.link, simulated.engine(with_free_compute(*simulated.program, costs), by_engine));

    if (ranks_are_identical(simulated.tape, costs)) {
      Recorder first;
      const Makespans folded = simulated.run(costs, first, Replay::Ranks::distinct);
      ASSERT_EQ(folded.actual, makespan) << "program " << i;
      ASSERT_EQ(folded.ideal, bounds.ideal) << "program " << i;
      ASSERT_EQ(folded.link, bounds.link) << "program " << i;
      ASSERT_EQ(first.ranks(), 1);
      ASSERT_EQ(Replay{}.makespan(*simulated.program, simulated.tape, costs, Replay::Ranks::distinct), makespan);
      for (Rank rank = 0; rank < summaries.ranks(); ++rank) {
        ASSERT_TRUE(same_summary(first.summary(0), summaries.summary(rank))) << "program " << i;
      }
      ++folded_to_one_rank;
    }
  }
  // Both forms of the tape were tried, and also programs whose ranks are identical.
  EXPECT_GT(tapes_of_single_ranks, 1000);
  EXPECT_LT(tapes_of_single_ranks, 9000);
  EXPECT_GT(folded_to_one_rank, 1000);
  // Tapes with self-paired exchanges occurred both with and without exchanges of the other kind.
  EXPECT_GT(mixed, 500);
  EXPECT_GT(all_self_paired, 50);
}

/// Returns the costs with every time multiplied by its own random factor from 1/2 to 2. `by_rank` keeps its number of
/// rows, so the same ranks share a row as before.
Costs stretched_at_random(Costs costs, std::mt19937_64& random) {
  std::uniform_real_distribution<double> factor(0.5, 2.0);
  for (std::vector<Duration>* times : {&costs.duration, &costs.by_rank}) {
    for (Duration& time : *times) {
      time = Duration{static_cast<std::int64_t>(static_cast<double>(time.count()) * factor(random))};
    }
  }
  return costs;
}

TEST(Replay, SeveralCostsReplayedTogetherEqualSeparateReplays) {
  std::mt19937_64 random(12);
  for (int i = 0; i < 3'000; ++i) {
    const RandomFold fold = random_fold(random);
    const Replayed simulated(i % 2 == 0 ? random_program(random, fold.mesh) : random_program(random));
    std::vector<Costs> costs{i % 2 == 0 ? random_costs(*simulated.program, random, fold.ranks)
                                        : random_costs(*simulated.program, random)};
    while (costs.size() < 1 + static_cast<std::size_t>(i % 9)) {
      costs.push_back(stretched_at_random(costs.front(), random));
    }
    for (const Replay::Ranks ranks : {Replay::Ranks::all, Replay::Ranks::distinct}) {
      std::vector<Duration> together{Duration{7}};  // The first entry keeps its value.
      Replay{}.makespans(*simulated.program, simulated.tape, costs, ranks, together);
      ASSERT_EQ(together.size(), costs.size() + 1);
      EXPECT_EQ(together.front(), Duration{7});
      for (std::size_t k = 0; k < costs.size(); ++k) {
        ASSERT_EQ(together[k + 1], Replay{}.makespan(*simulated.program, simulated.tape, costs[k], ranks))
            << "program " << i;
      }
    }
  }
}

/// Compares each rank with the rank that represents it.
void expect_repeated(const Recorder& every_rank, const Recorder& representatives, int program) {
  for (Rank rank = 0; rank < every_rank.ranks(); ++rank) {
    ASSERT_TRUE(same_summary(representatives.summary(rank % representatives.ranks()), every_rank.summary(rank)))
        << "program " << program;
  }
}

TEST(Replay, TheFirstRanksRepresentAllWhereCostsRepeat) {
  std::mt19937_64 random(11);
  int folded_runs = 0;
  for (int i = 0; i < 5'000; ++i) {
    const RandomFold fold = random_fold(random);
    const Replayed simulated(random_program(random, fold.mesh));
    const Costs costs = random_costs(*simulated.program, random, fold.ranks);
    Recorder every_rank;
    Recorder representatives;
    const Makespans all_makespans = simulated.run(costs, every_rank);
    const Makespans folded_makespans = simulated.run(costs, representatives, Replay::Ranks::distinct);
    ASSERT_EQ(every_rank.ranks(), fold.mesh.ranks());
    ASSERT_EQ(representatives.ranks(), costs.by_rank.empty() ? 1 : fold.ranks);
    ASSERT_EQ(folded_makespans.actual, all_makespans.actual) << "program " << i;
    ASSERT_EQ(folded_makespans.ideal, all_makespans.ideal) << "program " << i;
    ASSERT_EQ(folded_makespans.link, all_makespans.link) << "program " << i;
    ASSERT_EQ(Replay{}.makespan(*simulated.program, simulated.tape, costs, Replay::Ranks::distinct),
              all_makespans.actual);
    expect_repeated(every_rank, representatives, i);
    const Analysis a = analyse(*simulated.program, costs, every_rank);
    const Analysis b = analyse(*simulated.program, costs, representatives);
    ASSERT_EQ(a.critical_rank, b.critical_rank) << "program " << i;
    ASSERT_EQ(a.mean_exposed, b.mean_exposed) << "program " << i;
    ASSERT_EQ(a.max_exposed, b.max_exposed) << "program " << i;
    folded_runs += representatives.ranks() > 1 ? 1 : 0;
  }
  EXPECT_GT(folded_runs, 1000);
}

TEST(Replay, ReplaysAllRanksWhereCostsDoNotFoldTheMesh) {
  const Replayed simulated(one_site("commfuse", SiteKind::ag_gemm, 8));
  Costs costs = costs_of(*simulated.program, OpCosts{.gemm = 10us, .exchange = 5us});
  costs.by_rank = costs.duration;
  EXPECT_EQ(distinct_ranks(*simulated.program, simulated.tape, costs), 1);
  costs.by_rank.resize(3 * costs.duration.size(), 7us);
  EXPECT_EQ(distinct_ranks(*simulated.program, simulated.tape, costs), 8);
  costs.by_rank.resize(4 * costs.duration.size(), 7us);
  EXPECT_EQ(distinct_ranks(*simulated.program, simulated.tape, costs), 4);
  spread_rows(costs, 8);
  EXPECT_EQ(distinct_ranks(*simulated.program, simulated.tape, costs), 8);
}

TEST(Replay, ReportsARunThatExceedsDoubles) {
  const Replayed simulated(one_site("commfuse", SiteKind::ag_gemm, 2));
  Recorder recorder;
  EXPECT_THROW(simulated.run(costs_of(*simulated.program, {.gemm = 10000s}), recorder), ConfigError);
}

TEST(Tape, NeedsTheSameRegistersForManyRanksOfARing) {
  const Replayed few(one_site("commfuse", SiteKind::gemm_rs, 4));
  const Replayed many(one_site("commfuse", SiteKind::gemm_rs, 64));
  EXPECT_EQ(few.tape.registers, many.tape.registers);
  EXPECT_LT(many.tape.registers, 16U);
}

TEST(Tape, HasOneInstructionPerOpIfAllExchangesAreSelfPaired) {
  const Replayed ring(one_site("commfuse", SiteKind::ag_gemm, 8));
  ASSERT_EQ(ring.tape.instructions.size(), ring.program->ops.size());
  for (std::size_t i = 0; i < ring.program->ops.size(); ++i) {
    EXPECT_EQ(ring.tape.instructions[i].op, i);
  }
}

}  // namespace
}  // namespace commfuse::test
