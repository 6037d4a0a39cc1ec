// SPDX-License-Identifier: Apache-2.0
// Tests the verdicts on made-up jobs, in which one rank computes, sends or launches slowly, or is late occasionally, or
// all ranks are healthy.
#include "model/expect/rank_steps.h"

#include <gtest/gtest.h>

#include <functional>

#include "model/math/functions.h"
#include "model/random/philox.h"

namespace commfuse {
namespace {

double uniform_of_step(std::uint32_t job, std::uint32_t rank, std::uint32_t step, std::uint32_t which) {
  return (static_cast<double>(philox({which, step, rank, job}, 71)[0]) + 0.5) / 4294967296.0;
}

/// Returns a number whose distribution is normal to about 3.5 standard deviations: the sum of twelve uniform numbers.
double normal_of_step(std::uint32_t job, std::uint32_t rank, std::uint32_t step, std::uint32_t which) {
  double sum = -6.0;
  for (std::uint32_t i = 0; i < 12; ++i) {
    sum += uniform_of_step(job, rank, step, 100 * which + i);
  }
  return sum;
}

constexpr std::int64_t faulty = 5;

struct MadeJob {
  std::uint32_t number = 0;
  std::uint32_t ranks = 8;
  std::uint32_t steps = 20;
  double compute = 1.0;  ///< Factor of the faulty rank's compute time.
  double send = 1.0;
  double idle = 0.0;        ///< Added idle time, as a share of the step.
  double late_share = 0.0;  ///< Share of the faulty rank's steps that take 1.5 times as long.
};

/// Makes a synchronous job: a step ends on all ranks when the slowest rank has computed and the longest send is
/// done. GPUs differ by 1.5%, and the steps of one GPU by 2%.
std::vector<RankStep> make_steps(const MadeJob& job) {
  std::vector<RankStep> steps;
  for (std::uint32_t step = 0; step < job.steps; ++step) {
    double latest = 0.0;
    double longest_send = 0.0;
    const std::size_t first = steps.size();
    for (std::uint32_t rank = 0; rank < job.ranks; ++rank) {
      const bool is_faulty = rank == faulty;
      const double gpu = 0.015 * normal_of_step(job.number, rank, 0, 1);
      double compute = 300e3 * math::exp(gpu + 0.02 * normal_of_step(job.number, rank, step, 2));
      compute *= is_faulty ? job.compute : 1.0;
      compute *= is_faulty && uniform_of_step(job.number, rank, step, 9999) < job.late_share ? 1.5 : 1.0;
      const double send =
          80e3 * math::exp(0.02 * normal_of_step(job.number, rank, step, 3)) * (is_faulty ? job.send : 1.0);
      const double idle =
          8e3 * (1.0 + uniform_of_step(job.number, rank, step, 9998)) + (is_faulty ? job.idle * 400e3 : 0.0);
      steps.push_back({.rank = rank, .step = step, .compute_us = compute, .send_us = send, .idle_us = idle});
      latest = std::max(latest, compute + idle);
      longest_send = std::max(longest_send, send);
    }
    for (std::size_t i = first; i < steps.size(); ++i) {
      steps[i].time_us = latest + longest_send;
      steps[i].communication_us = steps[i].time_us - *steps[i].compute_us - *steps[i].idle_us;
    }
  }
  return steps;
}

StepJudgement judged_job(const MadeJob& job) { return judge_steps(make_steps(job), 0.01); }

TEST(RankSteps, FaultsAreNamedWithTheirRank) {
  struct Case {
    MadeJob job;
    RankFault fault;
  };
  for (const Case& tested :
       {Case{{.compute = 1.25}, RankFault::slow_compute}, Case{{.send = 1.6}, RankFault::slow_send},
        Case{{.idle = 0.2}, RankFault::slow_host}, Case{{.steps = 60, .late_share = 0.25}, RankFault::jitter}}) {
    for (std::uint32_t number = 0; number < 20; ++number) {
      MadeJob job = tested.job;
      job.number = number;
      const StepJudgement judgement = judged_job(job);
      ASSERT_EQ(judgement.health, Health::bad) << text_of(tested.fault).name << " " << number;
      ASSERT_EQ(judgement.suspects.size(), 1U) << text_of(tested.fault).name << " " << number;
      EXPECT_EQ(judgement.suspects[0].rank, faulty);
      EXPECT_EQ(judgement.suspects[0].fault, tested.fault) << text_of(judgement.suspects[0].fault).name;
      EXPECT_GT(judgement.suspects[0].probability, 0.8);
      EXPECT_GT(judgement.slowdown, 1.03);
      EXPECT_LT(judgement.healthy_probability, 0.2);
    }
  }
}

TEST(RankSteps, HealthyJobsHaveNoSuspects) {
  int false_alarms = 0;
  for (std::uint32_t number = 0; number < 400; ++number) {
    const StepJudgement judgement = judged_job({.number = number});
    false_alarms += judgement.health == Health::bad ? 1 : 0;
    EXPECT_NE(judgement.health, Health::undecided);
  }
  EXPECT_LE(false_alarms, 4);
}

TEST(RankSteps, EquallySlowRanksAreHealthy) {
  std::vector<RankStep> steps = make_steps({});
  for (RankStep& step : steps) {
    *step.compute_us *= 2.0;
  }
  EXPECT_EQ(judge_steps(steps, 0.01).health, Health::healthy);
}

// The rank computes 1.5 times as long, so 150 of the 550 ms of a step are lost.
TEST(RankSteps, TheSlowdownIsOfTheWholeStep) {
  const StepJudgement judgement = judged_job({.compute = 1.5});
  EXPECT_NEAR(judgement.suspects.at(0).degree, 1.5, 0.06);
  EXPECT_NEAR(judgement.slowdown, 1.0 + 0.5 * 300.0 / (1.5 * 300.0 + 100.0), 0.08);
  EXPECT_EQ(judgement.severity, Severity::major);
}

/// Returns the judgement of eight ranks over 60 steps of 100 ms. In every fourth step, the faulty rank is late.
StepJudgement judged_jitter(double late_us, const std::function<void(RankStep& step, bool is_late)>& fill) {
  std::vector<RankStep> steps;
  for (std::int64_t step = 0; step < 60; ++step) {
    for (std::int64_t rank = 0; rank < 8; ++rank) {
      const bool is_long = step % 4 == 0;
      steps.push_back({.rank = rank, .step = step, .time_us = is_long ? 100e3 + late_us : 100e3});
      fill(steps.back(), is_long && rank == faulty);
    }
  }
  return judge_steps(steps, 0.01);
}

// A quarter of the steps are 50 ms longer, 12.5% of a usual step on average. In these steps the other ranks wait 50 ms.
TEST(RankSteps, JitterCostsTheLatenessWhateverTheFileHas) {
  const StepJudgement waiting = judged_jitter(50e3, [](RankStep& step, bool is_late) {
    step.communication_us = 10e3 + (is_late ? 0.0 : step.time_us - 100e3);
  });
  const StepJudgement idle =
      judged_jitter(50e3, [](RankStep& step, bool is_late) { step.idle_us = is_late ? 50e3 : 0.0; });
  for (const StepJudgement& judgement : {waiting, idle}) {
    ASSERT_EQ(judgement.suspects.size(), 1U);
    EXPECT_EQ(judgement.suspects[0].rank, faulty);
    EXPECT_EQ(judgement.suspects[0].fault, RankFault::jitter);
    EXPECT_DOUBLE_EQ(judgement.suspects[0].degree, 0.25);
    EXPECT_DOUBLE_EQ(judgement.slowdown, 1.125);
    EXPECT_EQ(judgement.severity, Severity::minor);
  }
}

// Computing takes 80 ms, and three times as long in a quarter of the steps: 40 ms are lost on average.
TEST(RankSteps, JitterOfComputeTimeCostsTimeAndNotItsLogarithm) {
  const StepJudgement judgement =
      judged_jitter(160e3, [](RankStep& step, bool is_late) { step.compute_us = is_late ? 240e3 : 80e3; });
  ASSERT_EQ(judgement.suspects.size(), 1U);
  EXPECT_EQ(judgement.suspects[0].rank, faulty);
  EXPECT_EQ(judgement.suspects[0].fault, RankFault::jitter);
  EXPECT_NEAR(judgement.slowdown, 1.4, 1e-9);
  EXPECT_EQ(judgement.severity, Severity::major);
}

/// Returns the steps without some columns.
std::vector<RankStep> stripped(std::vector<RankStep> steps, const std::function<void(RankStep&)>& strip) {
  for (RankStep& step : steps) {
    strip(step);
  }
  return steps;
}

TEST(RankSteps, WithoutOtherColumnsTheRankThatWaitsLeastIsLate) {
  const StepJudgement judgement = judge_steps(stripped(make_steps({.compute = 1.3}),
                                                       [](RankStep& step) {
                                                         step.compute_us.reset();
                                                         step.send_us.reset();
                                                         step.idle_us.reset();
                                                       }),
                                              0.01);
  ASSERT_EQ(judgement.health, Health::bad);
  EXPECT_EQ(judgement.suspects.at(0).rank, faulty);
  EXPECT_EQ(judgement.suspects.at(0).fault, RankFault::late);
  EXPECT_EQ(judgement.suspects.size(), 1U);
}

TEST(RankSteps, TimesAloneNameTheSlowRankButNoCause) {
  const auto times_only = [](double factor) {
    std::vector<RankStep> steps = make_steps({});
    for (RankStep& step : steps) {
      step = {.rank = step.rank, .step = step.step, .time_us = *step.compute_us * (step.rank == faulty ? factor : 1.0)};
    }
    return judge_steps(steps, 0.01);
  };
  EXPECT_EQ(times_only(1.0).health, Health::healthy);
  ASSERT_EQ(times_only(1.3).health, Health::bad);
  EXPECT_EQ(times_only(1.3).suspects.at(0).fault, RankFault::slow);
  EXPECT_EQ(times_only(1.3).suspects.at(0).rank, faulty);
}

TEST(RankSteps, TwoBadRanksAreBothNamed) {
  std::vector<RankStep> steps = make_steps({.compute = 1.4});
  for (RankStep& step : steps) {
    *step.compute_us *= step.rank == 2 ? 1.3 : 1.0;
  }
  const StepJudgement judgement = judge_steps(steps, 0.01);
  ASSERT_EQ(judgement.suspects.size(), 2U);
}

// A trace may begin or end inside a step, so a rank may lack the kernels of that step.
TEST(RankSteps, AStepWithoutANumberHidesNoOtherStep) {
  std::vector<RankStep> slow_compute = make_steps({.compute = 1.3});
  slow_compute.back().compute_us = 0.0;
  EXPECT_EQ(judge_steps(slow_compute, 0.01).suspects.at(0).fault, RankFault::slow_compute);
  std::vector<RankStep> slow_send = make_steps({.send = 1.6});
  slow_send.front().send_us.reset();
  EXPECT_EQ(judge_steps(slow_send, 0.01).suspects.at(0).fault, RankFault::slow_send);
  EXPECT_EQ(judge_steps(slow_send, 0.01).suspects.at(0).rank, faulty);
}

TEST(RankSteps, ARankWithoutANumberHidesNoOtherRank) {
  for (const std::optional<double> compute : {std::optional<double>(), std::optional(0.0)}) {
    std::vector<RankStep> steps = make_steps({.compute = 1.3});
    for (RankStep& step : steps) {
      step.compute_us = step.rank == 2 ? compute : step.compute_us;
    }
    const StepJudgement judgement = judge_steps(steps, 0.01);
    EXPECT_EQ(judgement.ranks, 8U);
    EXPECT_EQ(judgement.suspects.at(0).fault, RankFault::slow_compute);
    EXPECT_EQ(judgement.suspects.at(0).rank, faulty);
  }
}

TEST(RankSteps, TooFewRanksOrStepsDecideNothing) {
  EXPECT_EQ(judge_steps({}, 0.01).health, Health::undecided);
  EXPECT_EQ(judged_job({.ranks = 2, .compute = 1.0}).health, Health::undecided);
  EXPECT_EQ(judged_job({.steps = 2}).health, Health::undecided);
  // One step of many ranks still reveals a rank that is far off.
  EXPECT_EQ(judged_job({.steps = 1, .compute = 2.0}).health, Health::bad);
}

TEST(RankSteps, EveryFaultHasATextAndACommand) {
  for (const RankFault fault : {RankFault::slow_compute, RankFault::slow_send, RankFault::slow_host, RankFault::jitter,
                                RankFault::late, RankFault::slow}) {
    EXPECT_FALSE(text_of(fault).name.empty());
    EXPECT_FALSE(text_of(fault).summary.empty());
    EXPECT_FALSE(text_of(fault).next.empty());
  }
}

}  // namespace
}  // namespace commfuse
