// SPDX-License-Identifier: Apache-2.0
// Tests percentiles of a step: cases with closed forms, and runs of every site of every step on simulated machines.
#include "sim/tune/step_tail.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/analysis/percentiles.h"
#include "model/cost/jitter_sampler.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"
#include "sim/engine/engine.h"
#include "sim/step/group_link.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

TEST(StepTail, MatchesAStepOfASlowMachineWhereOnlyGpusDiffer) {
  const StepSpread spread{.gpus = 64, .rank_sigma = 0.02, .groups = 8, .equal_gpus = 100ms, .per_slowdown = 0.08};
  const StepTail tail = tail_of(spread);
  const auto seconds_at = [](double probability) {
    return 0.1 + 0.08 * (slowest_of(64, 0.02, Probability{probability}) - 1.0);
  };
  EXPECT_NEAR(to_seconds(tail.p50), seconds_at(0.5), 3e-5);
  EXPECT_NEAR(to_seconds(tail.p99), seconds_at(0.99), 3e-5);
  EXPECT_NEAR(to_seconds(tail.mean), 0.1 + 0.08 * (slowest_of(64, 0.02) - 1.0), 3e-5);
}

TEST(StepTail, MatchesTheSlowestGroupWhereOnlyKernelsVary) {
  StepSpread spread{.groups = 1, .equal_gpus = 100ms};
  spread.add({.runs = 100, .excess = 1e-6, .deviation = 1e-5});  // The mean is 0.1 ms, with 0.1 ms of deviation.
  EXPECT_NEAR(to_seconds(tail_of(spread).p50), 0.1001, 1e-8);
  EXPECT_NEAR(to_seconds(tail_of(spread).p99), 0.1001 + 2.32635 * 1e-4, 1e-8);
  EXPECT_NEAR(deviations_at_p99(1), 2.32635, 1e-4);
  spread.groups = 64;  // All groups are below a time with probability 0.99 if each one is with 0.99^(1/64).
  EXPECT_NEAR(to_seconds(tail_of(spread).p99), 0.1001 + deviations_at_p99(64) * 1e-4, 1e-8);
  EXPECT_GT(deviations_at_p99(64), 3.5);
}

TEST(StepTail, WithoutJitterEqualsTheStep) {
  const StepTail tail = tail_of({.gpus = 8, .equal_gpus = 100ms, .per_slowdown = 0.1});
  EXPECT_EQ(tail.mean, 100ms);
  EXPECT_EQ(tail.p99, 100ms);
}

/// A step of eight ranks: several runs of a column-parallel and of a row-parallel GEMM, in sequence.
class DirectStep {
 public:
  static constexpr int runs = 6;  // Runs of each site.

  explicit DirectStep(const std::string& strategy) {
    for (const Scope scope : {Scope::gate_up, Scope::down}) {
      plans_.push_back(plan_of(lower(std::make_shared<const Program>(
          generate(operation_of(scope, true), mesh_of(8, {}), 0, *find_strategy(strategy), {})))));
      const Program& program = *plans_.back().lowered.program;
      Costs costs;
      for (const Op& op : program.ops) {
        costs.duration.emplace_back(op.purpose == Purpose::communication ? 30us : 100us);
      }
      costs.issue.assign(program.ops.size(), Duration{});
      costs_.push_back(costs);
    }
    Jitter jitter;
    jitter.rank_sigma.value = rank_sigma;
    gpus_ = std::make_shared<const JitterTables>(jitter);
    jitter = {};
    jitter.compute_sigma.value = 0.02;
    jitter.communication_sigma.value = 0.03;
    kernels_ = std::make_shared<const JitterTables>(jitter);
  }

  /// Returns the times of `machines` machines, sorted.
  std::vector<Duration> simulated(int machines) {
    std::vector<Duration> steps;
    for (int machine = 0; machine < machines; ++machine) {
      Duration step{};
      for (std::size_t site = 0; site < plans_.size(); ++site) {
        const Costs slow = drawn(site, costs_[site], gpus_, static_cast<std::uint64_t>(machine));
        for (int run = 0; run < runs; ++run) {
          step += makespan(site,
                           drawn(site, slow, kernels_, static_cast<std::uint64_t>(std::int64_t{machine} * runs + run)));
        }
      }
      steps.push_back(step);
    }
    std::sort(steps.begin(), steps.end());
    return steps;
  }

  StepSpread composed() {
    StepSpread spread{.gpus = 8, .rank_sigma = rank_sigma};
    for (std::size_t site = 0; site < plans_.size(); ++site) {
      const auto slowed_costs = [&](double slowdown) {
        return slowed_down(program(site), costs_[site], {.kernels = slowdown});
      };
      spread.equal_gpus += runs * makespan(site, costs_[site]);
      spread.per_slowdown += runs * to_seconds(makespan(site, slowed_costs(1.1)) - makespan(site, costs_[site])) / 0.1;
      const double factor = slowest_of(8, rank_sigma, Probability{0.99});
      const Costs slowest = with_slow_rank(program(site), costs_[site], 0, factor);
      const Duration expected = makespan(site, slowed_costs(factor));
      constexpr int samples = 500;
      double sum = 0.0;
      double squares = 0.0;
      for (std::uint64_t sample = 0; sample < samples; ++sample) {
        const double excess = to_seconds(makespan(site, drawn(site, slowest, kernels_, sample)) - expected);
        sum += excess / samples;
        squares += excess * excess / samples;
      }
      spread.add({.runs = runs, .excess = sum, .deviation = std::sqrt(squares - sum * sum)});
    }
    return spread;
  }

 private:
  static constexpr double rank_sigma = 0.03;

  [[nodiscard]] const Program& program(std::size_t site) const { return *plans_[site].lowered.program; }
  [[nodiscard]] Costs drawn(std::size_t site, const Costs& costs, const std::shared_ptr<const JitterTables>& tables,
                            std::uint64_t sample) const {
    return jittered(program(site), costs, {tables, 1 + site, draw_keys(program(site))}, sample);
  }
  Duration makespan(std::size_t site, const Costs& costs) {
    engine_.run(plans_[site], costs, recorder_);
    return recorder_.makespan().time_since_epoch();
  }

  std::vector<Plan> plans_;
  std::vector<Costs> costs_;
  std::shared_ptr<const JitterTables> gpus_;
  std::shared_ptr<const JitterTables> kernels_;
  Engine engine_;
  Recorder recorder_{Recorder::Keep::ends};
};

TEST(StepTail, MatchesStepsSimulatedRunByRun) {
  for (const char* strategy : {"serial", "commfuse"}) {
    DirectStep step(strategy);
    const std::vector<Duration> sorted = step.simulated(400);
    const StepTail composed = tail_of(step.composed());
    for (const auto& [per_mille, time] : {std::pair{500, composed.p50}, {950, composed.p95}, {990, composed.p99}}) {
      // The estimate gives all ranks except the slowest the usual speed, which is almost exact.
      const Estimate simulated = percentile(std::span(sorted), per_mille);
      EXPECT_GE(to_seconds(time), to_seconds(simulated.range->low) * 0.99) << strategy << " " << per_mille;
      EXPECT_LE(to_seconds(time), to_seconds(simulated.range->high) * 1.01) << strategy << " " << per_mille;
    }
  }
}

}  // namespace
}  // namespace commfuse
