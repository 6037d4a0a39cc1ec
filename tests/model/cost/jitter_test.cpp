// SPDX-License-Identifier: Apache-2.0
#include "model/cost/jitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "model/cost/jitter_sampler.h"
#include "model/random/philox.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

Jitter jitter_with(double compute, double communication, double rank, double stalls = 0.0) {
  Jitter jitter;
  jitter.compute_sigma.value = compute;
  jitter.communication_sigma.value = communication;
  jitter.rank_sigma.value = rank;
  jitter.stall_probability.value = stalls;
  jitter.stall_scale.value = 5us;
  jitter.stall_shape.value = 2.5;
  return jitter;
}

Program fuse_rs(std::int32_t ranks, const char* strategy = "commfuse") {
  return generate(operation_of(Scope::down, true), Mesh{{{"tp", ranks}}}, 0, *find_strategy(strategy), {});
}

JitterDraws draws_of(const Jitter& jitter, const Program& program, std::uint64_t seed = 1) {
  return {std::make_shared<const JitterTables>(jitter), seed, draw_keys(program)};
}

/// Returns prices that differ from op to op, of 10 us or more.
Costs some_costs(const Program& program) {
  Costs costs;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    costs.duration.emplace_back(10'000'000 + 12'345 * static_cast<std::int64_t>(op));
  }
  costs.issue.assign(program.ops.size(), 1us);
  return costs;
}

/// Returns the times of `op` in `count` samples, indexed by rank and sample.
std::vector<std::vector<double>> sampled(JitterSampler& sampler, std::int32_t ranks, std::size_t op, double nominal,
                                         std::size_t count) {
  std::vector<std::vector<double>> times(static_cast<std::size_t>(ranks));
  std::vector<double> batch(times.size() * sampler.lanes());
  const std::vector<double> price{nominal};
  for (std::size_t first = 0; first < count; first += sampler.lanes()) {
    sampler.begin(first);
    sampler.sample(op, price, batch.data());
    for (std::size_t rank = 0; rank < times.size(); ++rank) {
      const auto begin = batch.begin() + static_cast<std::ptrdiff_t>(rank * sampler.lanes());
      times[rank].insert(times[rank].end(), begin, begin + static_cast<std::ptrdiff_t>(sampler.lanes()));
    }
  }
  return times;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
double deviation(const std::vector<double>& values) {
  const double middle = mean(values);
  double sum = 0.0;
  for (const double value : values) {
    sum += (value - middle) * (value - middle);
  }
  return std::sqrt(sum / static_cast<double>(values.size()));
}
double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double middle_a = mean(a);
  const double middle_b = mean(b);
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += (a[i] - middle_a) * (b[i] - middle_b);
  }
  return sum / static_cast<double>(a.size()) / deviation(a) / deviation(b);
}

TEST(JitterSampler, VectorAndScalarPathsDrawTheSamePicoseconds) {
  for (const std::int32_t ranks : {2, 4, 7}) {
    const Program program = fuse_rs(ranks);
    const Costs costs = some_costs(program);
    for (const Jitter& jitter :
         {jitter_with(0.05, 0.1, 0.03, 0.1), jitter_with(0.2, 0.0, 0.0), jitter_with(0.0, 0.2, 0.05)}) {
      const JitterDraws draws = draws_of(jitter, program, 0x123456789abcdef0);
      for (const std::size_t lanes : {4U, 8U, 12U, 16U}) {
        for (const JitterLanes& inner : supported_jitter_lanes()) {
          JitterSampler sampler(draws, ranks, lanes, inner);
          std::vector<double> times(static_cast<std::size_t>(ranks) * lanes);
          sampler.begin(1000);
          for (std::size_t op = 0; op < program.ops.size(); ++op) {
            const std::vector<double> price{static_cast<double>(costs.duration[op].count())};
            sampler.sample(op, price, times.data());
            for (std::size_t lane = 0; lane < lanes; lane += 3) {
              const Costs lane_costs = jittered(program, costs, draws, 1000 + lane);
              for (std::int32_t rank = 0; rank < ranks; ++rank) {
                const double time = times[static_cast<std::size_t>(rank) * lanes + lane];
                ASSERT_EQ(lane_costs.of(rank, op), Duration{static_cast<std::int64_t>(time)});
                ASSERT_EQ(time, std::floor(time));
              }
            }
          }
        }
      }
    }
  }
}

TEST(JitterSampler, ManyRanksNeedSeveralRunsOfWords) {
  constexpr std::int32_t ranks = 300;  // 300 x 12 words, 1020 per run
  const Program program = fuse_rs(4);
  const JitterDraws draws = draws_of(jitter_with(0.1, 0.1, 0.1, 0.05), program);
  std::vector<double> prices(ranks);
  std::iota(prices.begin(), prices.end(), 1e6);
  std::vector<std::vector<double>> sampled;
  for (const JitterLanes& inner : supported_jitter_lanes()) {
    JitterSampler sampler(draws, ranks, 12, inner);
    sampled.emplace_back(ranks * 12);
    sampler.begin(12);
    sampler.sample(0, prices, sampled.back().data());
  }
  for (const std::vector<double>& times : sampled) {
    EXPECT_EQ(times, sampled.front());
  }
  // Samples 20 to 23 of rank 299, in a batch of 4 instead of 12: draws do not depend on the number of lanes.
  JitterSampler four_lanes(draws, ranks, 4);
  std::vector<double> times(std::size_t{ranks} * 4);
  four_lanes.begin(20);
  four_lanes.sample(0, prices, times.data());
  EXPECT_TRUE(std::equal(times.end() - 4, times.end(), sampled[0].end() - 4));
}

TEST(JitterSampler, OnePriceEqualsThatPriceForEveryRank) {
  const Program program = fuse_rs(4);
  JitterSampler sampler(draws_of(jitter_with(0.1, 0.1, 0.1, 0.05), program), 4, 8);
  std::vector<double> from_one_price(32);
  std::vector<double> from_four_prices(32);
  const std::vector<double> price{5e6};
  const std::vector<double> prices(4, 5e6);
  sampler.begin(0);
  sampler.sample(0, price, from_one_price.data());
  sampler.sample(0, prices, from_four_prices.data());
  EXPECT_EQ(from_one_price, from_four_prices);
}

TEST(JitterSampler, KernelsVaryByTheirSigma) {
  const Program program = fuse_rs(4);
  JitterSampler sampler(draws_of(jitter_with(0.05, 0.2, 0.0), program), 4, 16);
  const auto gemms = sampled(sampler, 4, 0, 1e9, 20'000);
  const auto transfers = sampled(sampler, 4, 1, 1e9, 20'000);
  ASSERT_EQ(program.ops[0].purpose, Purpose::essential);
  ASSERT_EQ(program.ops[1].purpose, Purpose::communication);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_NEAR(mean(gemms[rank]) / 1e9, std::exp(0.05 * 0.05 / 2), 0.002);
    EXPECT_NEAR(deviation(gemms[rank]) / 1e9, 0.05, 0.002);
    EXPECT_NEAR(deviation(transfers[rank]) / 1e9, std::sqrt(std::expm1(0.04) * std::exp(0.04)), 0.01);
  }
  EXPECT_NEAR(correlation(gemms[0], gemms[1]), 0.0, 0.03);
  EXPECT_NEAR(correlation(gemms[0], transfers[0]), 0.0, 0.03);
}

TEST(JitterSampler, ASlowRankIsSlowInAllItsKernelsButNotOnTheWire) {
  const Program program = fuse_rs(4);
  JitterSampler sampler(draws_of(jitter_with(0.0, 0.0, 0.03), program), 4, 16);
  const auto first_gemm = sampled(sampler, 4, 0, 1e9, 4000);
  const auto second_gemm = sampled(sampler, 4, 2, 1e9, 4000);
  const auto transfers = sampled(sampler, 4, 1, 1e9, 4000);
  ASSERT_EQ(program.ops[2].purpose, Purpose::essential);
  EXPECT_EQ(first_gemm, second_gemm);
  EXPECT_NEAR(deviation(first_gemm[2]) / 1e9, 0.03, 0.002);
  EXPECT_NEAR(correlation(first_gemm[0], first_gemm[1]), 0.0, 0.06);
  EXPECT_EQ(transfers[0], std::vector<double>(4000, 1e9));
}

TEST(JitterSampler, StallsAreAsRareAndAsLongAsStated) {
  const Program program = fuse_rs(2);
  JitterSampler sampler(draws_of(jitter_with(0.0, 0.0, 0.0, 0.01), program), 2, 16);
  const std::vector<double> times = sampled(sampler, 2, 0, 1e6, 200'000)[0];
  const auto stalled = std::count_if(times.begin(), times.end(), [](double time) { return time > 1e6; });
  EXPECT_NEAR(static_cast<double>(stalled), 2000, 4 * 45);  // four standard deviations
  // (time - price) / 5 us exceeds 10^(1/2.5) in a tenth of all stalls.
  const double limit = 1e6 + 5e6 * std::pow(10.0, 1 / 2.5);
  const auto longest = std::count_if(times.begin(), times.end(), [&](double time) { return time > limit; });
  EXPECT_NEAR(static_cast<double>(longest), 200, 4 * 14);
  EXPECT_TRUE(std::none_of(times.begin(), times.end(), [](double time) { return time > 1e6 && time < 6e6; }));
}

TEST(JitterSampler, OpsThatTakeNoTimeNeverStall) {
  const Program program = fuse_rs(2);
  JitterSampler sampler(draws_of(jitter_with(0.1, 0.1, 0.1, 0.1), program), 2, 16);
  EXPECT_EQ(sampled(sampler, 2, 0, 0.0, 1600)[0], std::vector<double>(1600, 0.0));
}

TEST(JitterSampler, AMeasuredSampleReplacesTheLognormal) {
  const Program program = fuse_rs(2);
  Jitter jitter = jitter_with(0.5, 0.0, 0.0);
  jitter.compute_ratios = {1.0, 1.0, 1.5, 1.5};
  JitterSampler sampler(draws_of(jitter, program), 2, 16);
  const std::vector<double> times = sampled(sampler, 2, 0, 1e9, 4000)[0];
  EXPECT_EQ(*std::min_element(times.begin(), times.end()), 1e9);
  EXPECT_EQ(*std::max_element(times.begin(), times.end()), 1.5e9);
  EXPECT_NEAR(mean(times) / 1e9, 1.25, 0.02);
}

TEST(JitterSampler, StrategiesSeeTheSameRanksAndTheSameFirstGemm) {
  const Jitter jitter = jitter_with(0.05, 0.05, 0.03);
  const Program serial = fuse_rs(4, "serial");
  const Program fused = fuse_rs(4);
  JitterSampler of_serial(draws_of(jitter, serial), 4, 8);
  JitterSampler of_fused(draws_of(jitter, fused), 4, 8);
  EXPECT_EQ(sampled(of_serial, 4, 0, 1e9, 64), sampled(of_fused, 4, 0, 1e9, 64));
  EXPECT_NE(sampled(of_serial, 4, 0, 1e9, 64), sampled(of_fused, 4, 2, 1e9, 64));
}

// The digest is fixed: the test fails if a compiler, processor or maths library gives other numbers.
TEST(JitterSampler, DrawsTheSamePicosecondsEverywhere) {
  JitterDraws draws{.tables = std::make_shared<const JitterTables>(jitter_with(0.05, 0.1, 0.02, 1e-3)), .seed = 42};
  for (std::uint32_t op = 0; op < 64; ++op) {
    draws.keys.push_back({.step = op / 3, .purpose = op % 3});
  }
  for (const JitterLanes& inner : supported_jitter_lanes()) {
    JitterSampler sampler(draws, 16, 8, inner);
    const std::vector<double> price{123'456'789.0};
    std::vector<double> times(std::size_t{16} * 8);
    std::uint64_t digest = 0xcbf29ce484222325;  // FNV-1a over whole picoseconds
    for (std::uint64_t first = 0; first < 800; first += 8) {
      sampler.begin(first);
      for (std::size_t op = 0; op < draws.keys.size(); ++op) {
        sampler.sample(op, price, times.data());
        for (const double time : times) {
          digest = (digest ^ static_cast<std::uint64_t>(time)) * 0x100000001b3;
        }
      }
    }
    EXPECT_EQ(digest, 14569564593809640231U);
  }
}

TEST(JitterSampler, AnotherSeedDrawsAnotherRun) {
  const Program program = fuse_rs(2);
  JitterSampler first(draws_of(jitter_with(0.1, 0.1, 0.1), program, 1), 2, 8);
  JitterSampler second(draws_of(jitter_with(0.1, 0.1, 0.1), program, 2), 2, 8);
  EXPECT_NE(sampled(first, 2, 0, 1e9, 8), sampled(second, 2, 0, 1e9, 8));
}

TEST(Jittered, ADrawIsAPhiloxWordOfItsPlace) {
  const Program program = fuse_rs(4);
  const JitterDraws draws = draws_of(jitter_with(0.05, 0.0, 0.0), program, 7);
  const Costs costs = some_costs(program);
  const Costs sampled = jittered(program, costs, draws, 4 * 9 + 2);
  const double factor = draws.tables->kernel(false)->at(philox({9, 3, 1, 0}, 7)[2]);  // the second GEMM of rank 3
  ASSERT_EQ(draws.keys[2], (DrawKey{.step = 1, .purpose = 0}));
  EXPECT_EQ(sampled.of(3, 2).count(), std::llround(static_cast<double>(costs.duration[2].count()) * factor));
}

TEST(Jittered, KeepsIssueCostsAndRecordsThePriceAsUndisturbedTime) {
  const Program program = fuse_rs(4);
  const JitterDraws draws = draws_of(jitter_with(0.05, 0.05, 0.03), program);
  Costs costs = some_costs(program);
  const Costs drawn = jittered(program, costs, draws, 5);
  EXPECT_NE(drawn.of(1, 2), costs.of(1, 2));
  EXPECT_EQ(drawn.undisturbed_of(1, 2), costs.of(1, 2));
  EXPECT_EQ(drawn.issue, costs.issue);
  EXPECT_EQ(essential_time(program, drawn, 1), essential_time(program, costs, 1));

  costs.undisturbed.assign(program.ops.size(), 3us);
  EXPECT_EQ(jittered(program, costs, draws, 5).undisturbed_of(1, 2), Duration{3us});

  Costs by_rank = some_costs(program);
  for (Rank rank = 0; rank < 4; ++rank) {
    for (const Duration time : some_costs(program).duration) {
      by_rank.by_rank.push_back(time * (rank + 1));
    }
  }
  const Costs differing = jittered(program, by_rank, draws, 5);
  EXPECT_EQ(differing.undisturbed_of(3, 2), by_rank.of(3, 2));
  EXPECT_NEAR(static_cast<double>(differing.of(3, 2).count()), 4.0 * static_cast<double>(drawn.of(3, 2).count()), 4.0);
}

TEST(Jitter, DependsOnTheParametersItDraws) {
  const auto kind = [](Provenance provenance) { return static_cast<std::size_t>(provenance); };
  Jitter jitter = jitter_with(0.01, 0.0, 0.0);
  jitter.compute_sigma.provenance = Provenance::measured;
  jitter.communication_sigma.provenance = Provenance::published;
  EXPECT_TRUE(provenances_of(jitter)[kind(Provenance::measured)]);
  EXPECT_FALSE(provenances_of(jitter)[kind(Provenance::published)]);
  EXPECT_FALSE(provenances_of(jitter)[kind(Provenance::prior)]);
  jitter.communication_ratios = {1.1};
  EXPECT_TRUE(provenances_of(jitter)[kind(Provenance::published)]);
  jitter.stall_probability.value = 0.001;
  EXPECT_TRUE(provenances_of(jitter)[kind(Provenance::prior)]);
}

TEST(Jittered, WithoutJitterNothingChanges) {
  const Program program = fuse_rs(4);
  const Costs costs = some_costs(program);
  const Costs unchanged = jittered(program, costs, draws_of(Jitter{}, program), 3);
  for (Rank rank = 0; rank < 4; ++rank) {
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      EXPECT_EQ(unchanged.of(rank, op), costs.of(rank, op));
    }
  }
}

}  // namespace
}  // namespace commfuse
