// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/monte_carlo.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "model/config/catalogue.h"
#include "model/program/builder.h"
#include "tests/sim/random_program.h"
#include "tests/sim/simulated.h"

namespace commfuse::test {
namespace {

using namespace std::chrono_literals;

/// A program that is ready to be sampled.
struct Ready {
  std::shared_ptr<const Program> program;
  Costs costs;
  Plan plan = plan_of(lower(program));
  Tape tape = tape_of(plan.lowered);
  std::vector<DrawKey> keys = draw_keys(*program);

  Ready(Program made, const OpCosts& op_costs)
      : program(std::make_shared<const Program>(std::move(made))), costs(costs_of(*program, op_costs)) {}
  Ready(Program made, std::mt19937_64& random)
      : program(std::make_shared<const Program>(std::move(made))), costs(random_costs(*program, random)) {}

  [[nodiscard]] PricedSchedule schedule() const { return {plan, tape, keys, costs}; }
};

MonteCarloOptions options(std::size_t samples, std::uint64_t seed = 1) {
  return {.jitter = std::make_shared<const JitterTables>(load_jitter("default")), .seed = seed, .samples = samples};
}

TEST(MonteCarlo, ReplayOfManySamplesAndTheEngineAgreeToThePicosecond) {
  std::mt19937_64 random(7);
  int tapes_of_single_ranks = 0;
  for (int i = 0; i < 300; ++i) {
    const Ready ready(random_program(random), random);
    tapes_of_single_ranks += ready.tape.all_ranks ? 0 : 1;
    MonteCarloOptions sampling = options(13, random());
    const std::vector<Duration> replayed = MonteCarlo{}.makespans(ready.schedule(), sampling);
    const EngineOptions engine;
    sampling.engine = &engine;
    ASSERT_EQ(MonteCarlo{}.makespans(ready.schedule(), sampling), replayed) << "program " << i;
  }
  EXPECT_GT(tapes_of_single_ranks, 30);
}

TEST(MonteCarlo, MoreSamplesKeepTheFirstSamples) {
  const Ready ready(one_site("commfuse", SiteKind::gemm_rs, 8), {.gemm = 100us, .exchange = 90us, .elementwise = 5us});
  const std::vector<Duration> few = MonteCarlo{}.makespans(ready.schedule(), options(5));
  std::vector<Duration> many = MonteCarlo{}.makespans(ready.schedule(), options(101));
  many.resize(5);
  EXPECT_EQ(many, few);
}

/// Calls `body` with each index below `count`. Three threads share the indices, and each takes its own in descending
/// order.
void on_three_threads(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::vector<std::jthread> threads;
  for (std::size_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&body, count, thread] {
      for (std::size_t i = count; i > 0; --i) {
        if (i % 3 == thread) {
          body(i - 1);
        }
      }
    });
  }
}

TEST(MonteCarlo, ThreadsChangeNeitherSamplesNorCauses) {
  std::mt19937_64 random(8);
  const EngineOptions engine;
  for (int i = 0; i < 40; ++i) {
    const Ready ready(random_program(random), random);
    MonteCarloOptions sampling = options(i % 4 == 0 ? 2500 : 130, random());
    sampling.engine = i % 2 == 0 ? nullptr : &engine;
    MonteCarlo single_thread;
    MonteCarlo threaded(&on_three_threads);
    const Tails expected = single_thread.run(ready.schedule(), sampling);
    ASSERT_EQ(threaded.run(ready.schedule(), sampling), expected) << "program " << i;
    ASSERT_EQ(threaded.makespans(ready.schedule(), sampling), single_thread.makespans(ready.schedule(), sampling))
        << "program " << i;
  }
}

TEST(MonteCarlo, StrategiesMeetTheSameSlowRanks) {
  // GEMMs take all the time, so the slowest rank of a sample determines both strategies, whose times rise and fall
  // together.
  const Ready serial(one_site("serial", SiteKind::ag_gemm, 8), {.gemm = 800us});
  const Ready fused(one_site("commfuse", SiteKind::ag_gemm, 8), {.gemm = 100us});
  const std::vector<Duration> a = MonteCarlo{}.makespans(serial.schedule(), options(400));
  const std::vector<Duration> b = MonteCarlo{}.makespans(fused.schedule(), options(400));
  const auto mean = [](const std::vector<Duration>& makespans) {
    return to_seconds(std::accumulate(makespans.begin(), makespans.end(), Duration{})) /
           static_cast<double>(makespans.size());
  };
  double covariance = 0.0;
  double variance_a = 0.0;
  double variance_b = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = to_seconds(a[i]) - mean(a);
    const double y = to_seconds(b[i]) - mean(b);
    covariance += x * y;
    variance_a += x * x;
    variance_b += y * y;
  }
  EXPECT_GT(covariance * covariance, 0.5 * variance_a * variance_b);  // The correlation is more than 0.7.
}

TEST(MonteCarlo, PercentilesRiseAndCausesAddUp) {
  const Ready ready(one_site("sliced", SiteKind::gemm_rs, 4, {.slices = 4}), {.gemm = 100us, .collective = 80us});
  const Tails tails = MonteCarlo{}.run(ready.schedule(), options(4000));
  const Percentiles& percentiles = tails.percentiles;
  EXPECT_EQ(percentiles.samples, 4000U);
  EXPECT_LT(percentiles.p50.value, percentiles.p95.value);
  EXPECT_LT(percentiles.p95.value, percentiles.p99.value);
  EXPECT_LT(percentiles.p99.value, percentiles.p99_9.value);
  ASSERT_TRUE(percentiles.p99.range);
  EXPECT_LE(percentiles.p99.range->low, percentiles.p99.value);
  EXPECT_GE(percentiles.p99.range->high, percentiles.p99.value);

  const P99Causes& causes = tails.causes;
  EXPECT_EQ(causes.samples, 41U);  // In ascending order of makespan, samples 3,940 to 3,980 of 4,000.
  EXPECT_GE(causes.mean.makespan, percentiles.p95.value);
  EXPECT_EQ(causes.mean.makespan,
            causes.mean.compute + causes.mean.slicing + causes.mean.stretch + causes.mean.local + causes.mean.exposed);
  EXPECT_EQ(causes.on_path[static_cast<std::size_t>(PathKind::communication)], 1.0);
  EXPECT_EQ(causes.rank_time_on_path.size(), 4U);
}

TEST(MonteCarlo, AScheduleWithoutOpsTakesNoTime) {
  const Ready ready(ProgramBuilder("empty", Mesh{{{"tp", 2}}}).build(), OpCosts{});
  const Tails tails = MonteCarlo{}.run(ready.schedule(), options(100));
  EXPECT_EQ(tails.percentiles.p99.value, Duration{});
  EXPECT_EQ(tails.causes.mean.makespan, Duration{});
}

TEST(MonteCarlo, TheEngineCombinesFaultsAndJitter) {
  const Ready ready(one_site("commfuse", SiteKind::ag_gemm, 4), {.gemm = 100us, .exchange = 10us});
  const Faults faults{.slow_ranks = {{.rank = 2, .factor = 2.0}}};
  const EngineOptions engine{.faults = &faults};
  MonteCarloOptions with_faults = options(40);
  with_faults.engine = &engine;
  const Tails tails = MonteCarlo{}.run(ready.schedule(), with_faults);
  EXPECT_GT(tails.percentiles.p50.value, 750us);
  EXPECT_EQ(tails.causes.worst_rank(), 2);
}

}  // namespace
}  // namespace commfuse::test
