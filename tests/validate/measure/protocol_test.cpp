// SPDX-License-Identifier: Apache-2.0
// Tests turns, warm-up and summaries, with executors that only count.
#include "validate/measure/protocol.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/validate/mpi/threads_world.h"
#include "tests/validate/reference/matrices.h"
#include "validate/mpi/crew.h"

namespace commfuse::validate {
namespace {

using namespace std::chrono_literals;

/// An executor whose n-th run takes n microseconds and which gets stuck at run `stuck_at`.
class Counter final : public Executor {
 public:
  Counter(std::vector<int>& turns_taken, int id, int stuck_at = 1000)
      : program_(program_of({&checked_operations()[0], &serial_strategy, {}, 2, 1})),
        turns_taken_(turns_taken),
        id_(id),
        stuck_at_(stuck_at) {}
  [[nodiscard]] std::string_view name() const override { return "counter"; }
  [[nodiscard]] const Program& program() const override { return program_; }
  [[nodiscard]] const Sizes& sizes() const override { return sizes_; }
  void prepare(std::span<const Matrix<float>> /*tensors*/) override {}
  Execution run(const RunOptions& options) override {
    if (++runs_ >= stuck_at_) {
      throw Stuck("no op can run: rank 0 waits");
    }
    turns_taken_.push_back(id_);
    return {.makespan = runs_ * 1us,
            .timeline = options.traced ? Timeline{{0, OpId{0}, Instant(), Instant(1us)}} : Timeline{}};
  }
  [[nodiscard]] Matrix<float> fetch(Rank /*rank*/, const Rectangle& /*area*/) const override { return {}; }

 private:
  Program program_;
  Sizes sizes_;
  std::vector<int>& turns_taken_;
  int id_;
  int stuck_at_;
  int runs_ = 0;
};

TEST(Turns, EveryRoundIsAPermutationAndRoundsDiffer) {
  const auto rounds = turns(5, 40, 7);
  ASSERT_EQ(rounds.size(), 40U);
  std::set<std::vector<std::size_t>> seen;
  std::vector<int> first(5);
  for (std::vector<std::size_t> round : rounds) {
    seen.insert(round);
    ++first[round.front()];
    std::ranges::sort(round);
    EXPECT_EQ(round, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
  }
  EXPECT_GT(seen.size(), 20U);
  EXPECT_TRUE(std::ranges::all_of(first, [](int times) { return times > 0; }));
  EXPECT_EQ(turns(5, 40, 7), rounds);
  EXPECT_NE(turns(5, 40, 8), rounds);
}

TEST(Measure, WarmUpDoesNotCountAndSchedulesTakeTurns) {
  std::vector<int> taken;
  std::vector<Variant> variants(3);
  for (int id = 0; id < 3; ++id) {
    variants[static_cast<std::size_t>(id)].executor = std::make_unique<Counter>(taken, id);
  }
  int rounds_reported = 0;
  measure(variants, {.warm_up = 2, .iterations = 3, .traced = true}, [&](int done, int rounds) {
    EXPECT_EQ(done, ++rounds_reported);
    EXPECT_EQ(rounds, 5);
  });
  for (const Variant& variant : variants) {
    EXPECT_EQ(variant.run.makespans, (std::vector<Duration>{3us, 4us, 5us}));
    EXPECT_EQ(variant.run.spans.size(), 1U);
    EXPECT_EQ(variant.run.status, RunStatus::done);
  }
  ASSERT_EQ(taken.size(), 18U);  // five rounds, and one traced
  for (std::ptrdiff_t round = 0; round < 5; ++round) {
    std::vector<int> ids_of_round(taken.begin() + 3 * round, taken.begin() + 3 * round + 3);
    std::ranges::sort(ids_of_round);
    EXPECT_EQ(ids_of_round, (std::vector<int>{0, 1, 2}));
  }
}

TEST(Measure, AStuckScheduleFailsAndTheOthersContinue) {
  std::vector<int> taken;
  std::vector<Variant> variants(2);
  variants[0].executor = std::make_unique<Counter>(taken, 0, 3);
  variants[1].executor = std::make_unique<Counter>(taken, 1);
  measure(variants, {.warm_up = 1, .iterations = 3});
  EXPECT_EQ(variants[0].run.status, RunStatus::failed);
  EXPECT_EQ(variants[0].run.message, "no op can run: rank 0 waits");
  EXPECT_EQ(variants[0].run.makespans, std::vector<Duration>{});
  EXPECT_EQ(variants[1].run.makespans.size(), 3U);
}

/// An executor that meets all ranks at the end of every run, as executors with one GPU each do, and records whether
/// another rank was running a different schedule. Run `stuck_at` gets stuck before it meets the other ranks.
class Meeting final : public Executor {
 public:
  Meeting(Crew& crew, int id, int stuck_at, bool& mixed)
      : program_(program_of({&checked_operations()[0], &serial_strategy, {}, 2, 1})),
        crew_(crew),
        id_(id),
        stuck_at_(stuck_at),
        mixed_(mixed) {}
  [[nodiscard]] std::string_view name() const override { return "meeting"; }
  [[nodiscard]] const Program& program() const override { return program_; }
  [[nodiscard]] const Sizes& sizes() const override { return sizes_; }
  void prepare(std::span<const Matrix<float>> /*tensors*/) override {}
  Execution run(const RunOptions& /*options*/) override {
    if (++runs_ == stuck_at_) {
      throw Stuck("rank 1 did not finish within 1 s");
    }
    PayloadWriter writer;
    writer.put(id_);
    for (const Payload& other : crew_.gather(crew_.processes(), writer.take())) {
      mixed_ = PayloadReader(other).get<int>() != id_ || mixed_;
    }
    return {.makespan = 1us, .timeline = {}};
  }
  [[nodiscard]] Matrix<float> fetch(Rank /*rank*/, const Rectangle& /*area*/) const override { return {}; }

 private:
  Program program_;
  Sizes sizes_;
  Crew& crew_;
  int id_;
  int stuck_at_;
  bool& mixed_;
  int runs_ = 0;
};

// The rank that gives up ends. The others end too, whichever rank leads, and never meet it in another schedule.
TEST(Measure, ARankThatIsStuckAloneEndsTheOthers) {
  for (const int stuck : {0, 1, 2}) {
    bool mixed = false;
    const std::vector<std::string> thrown = test::on_processes(3, [&](World& world) {
      Crew crew(world, 10s);
      std::vector<Variant> variants(3);
      for (int id = 0; id < 3; ++id) {
        const int stuck_at = world.process() == stuck && id == 1 ? 2 : 0;
        variants[static_cast<std::size_t>(id)].executor = std::make_unique<Meeting>(crew, id, stuck_at, mixed);
      }
      try {
        measure(variants, {.warm_up = 1, .iterations = 3, .alone = false});
      } catch (const Stuck& failure) {
        crew.agree(1, failure.what());
        throw;
      }
    });
    EXPECT_FALSE(mixed) << stuck;
    for (const std::string& sentence : thrown) {
      EXPECT_NE(sentence.find("rank 1 did not finish within 1 s"), std::string::npos) << stuck << sentence;
    }
  }
}

TEST(Summary, IsComputedFromSortedMakespans) {
  std::vector<Duration> makespans;
  for (int i = 20; i >= 1; --i) {
    makespans.emplace_back(i * 1ms);
  }
  const Summary summary = summary_of(makespans);
  EXPECT_EQ(summary.samples, 20U);
  EXPECT_EQ(summary.median.value, 10ms);  // the 10th of 20
  EXPECT_EQ(summary.p10, 2ms);
  EXPECT_EQ(summary.p90, 18ms);
  ASSERT_TRUE(summary.median.range.has_value());
  EXPECT_EQ(*summary.median.range, (TimeRange{6ms, 15ms}));  // binomial(20, 1/2): at most 0.0207 beyond either end
}

TEST(NoiseFloor, IsMeasuredAndReported) {
  const NoiseFloor noise = noise_floor(2);
  EXPECT_EQ(noise.samples.size(), 21U);
  EXPECT_TRUE(std::ranges::all_of(noise.samples, [](Duration sample) { return sample >= 1ms; }));
  EXPECT_EQ(noise.threads, 2);
  NoiseFloor late{.stated = 1ms, .samples = std::vector<Duration>(21, 1012us)};
  EXPECT_EQ(in_words(late), "1 ms took 1.012 ms (p90 1.012 ms)");
  late.threads = 1;
  EXPECT_EQ(in_words(late), "1 ms took 1.012 ms on one thread (p90 1.012 ms)");
  late.threads = 8;
  EXPECT_EQ(in_words(late), "1 ms took 1.012 ms on 8 threads simultaneously (p90 1.012 ms)");
}

TEST(Pace, IsInWords) {
  EXPECT_EQ(pace_in_words(1.0), "in real time");
  EXPECT_EQ(pace_in_words(2.5), "2.5 times slower; times are divided by that factor");
}

TEST(ThisEnvironment, DescribesItself) {
  const Environment environment = this_environment();
  EXPECT_FALSE(environment.cpu.empty());
  EXPECT_GT(environment.cores, 0);
  EXPECT_FALSE(environment.os.empty());
}

}  // namespace
}  // namespace commfuse::validate
