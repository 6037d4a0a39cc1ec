// SPDX-License-Identifier: Apache-2.0
#include "sim/tune/tune.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/framework.h"
#include "model/config/implementation.h"
#include "model/config_error.h"
#include "model/workload/layers.h"
#include "sim/step/predict_steps.h"
#include "sim/tune/wishes.h"
#include "tests/refusal.h"
#include "tests/sim/grid_of.h"
#include "tests/sim/small_transformer.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

/// With this rule the fastest plan ties only with plans of equal time.
const TuneOptions fastest_alone{.rule = {.difference = 0.0, .probability = 0.5}, .errors = false};

class TuneTest : public ::testing::Test {
 protected:
  void SetUp() override { machine_ = load_machine("a100-sxm-80"); }

  [[nodiscard]] PlanSpace space(std::int64_t gpus, std::int64_t batch) const {
    return {.model = &model_, .machine = &machine_, .gpus = gpus, .base = {.global_batch = batch, .seq = 2048}};
  }

  Transformer model_ = test::small_transformer;
  Machine machine_;
};

TEST_F(TuneTest, LayoutsOfTwoGpusAndTwoSequencesAreCountedByHand) {
  // Tensor: one micro-batch of 2, or two of 1. Pipeline: 1 chunk per stage with either choice; 2, 4 or 5 chunks only
  // with two micro-batches, because interleaving needs a multiple of the stages: 2 + 1 + 1 + 1. Ten chunks in all are
  // eight layers, the embedding and the loss. Context: either choice, times ZeRO 1 or 3. Data: one sequence per rank,
  // times ZeRO 1 or 3. Each of these plans exists with and without recomputation.
  std::size_t tensor = 0;
  std::size_t pipeline = 0;
  std::size_t context = 0;
  std::size_t data = 0;
  for (const TrainingPlan& plan : plans_of(space(2, 2))) {
    tensor += plan.tensor == 2 ? 1 : 0;
    pipeline += plan.pipeline == 2 ? 1 : 0;
    context += plan.context == 2 ? 1 : 0;
    data += plan.data == 2 ? 1 : 0;
    EXPECT_EQ(plan.gpus(), 2);
  }
  EXPECT_EQ(tensor, 2U * 2U);
  EXPECT_EQ(pipeline, 5U * 2U);
  EXPECT_EQ(context, 2U * 2U * 2U);
  EXPECT_EQ(data, 1U * 2U * 2U);
}

TEST_F(TuneTest, TriesEveryNumberOfChunksThatTheLayersAllow) {
  // 80 layers in four stages: 4, 8, 16, 20, 40 and 80 chunks divide 80; of the divisors of 82 none is a multiple of 4.
  model_.layers = 80;
  PlanSpace staged = space(4, 16);
  staged.wish = {.tensor = 1, .pipeline = 4, .micro_batch = 1, .recompute = Recompute::none};
  std::vector<std::int64_t> chunks;
  for (const TrainingPlan& plan : plans_of(staged)) {
    chunks.push_back(plan.interleave);
  }
  EXPECT_EQ(chunks, (std::vector<std::int64_t>{1, 2, 4, 5, 10, 20}));
}

TEST_F(TuneTest, TheFastestPlanIsTheFastestOfAllNumbersOfChunks) {
  model_.layers = 24;
  PlanSpace staged = space(4, 16);
  staged.wish = {.tensor = 1, .pipeline = 4, .micro_batch = 1, .recompute = Recompute::none};
  const Tuning searched = tune(staged, fastest_alone);
  for (const std::int64_t chunks : {1, 2, 3, 6}) {
    staged.wish.interleave = chunks;
    EXPECT_GE(tune(staged, fastest_alone).best.front().step.time, searched.best.front().step.time) << chunks;
  }
}

TEST_F(TuneTest, AStrategyThatCannotSplitSoFewTokensIsReported) {
  PlanSpace few_tokens = space(8, 1);
  few_tokens.base.seq = 8;
  few_tokens.wish = {.tensor = 8};
  const Tuning tuning = tune(few_tokens, {});
  ASSERT_FALSE(tuning.best.empty());
  EXPECT_NE(tuning.single, nullptr);
  ASSERT_EQ(tuning.without_schedule.size(), 1U);
  EXPECT_EQ(tuning.without_schedule.front().strategy->name, "sliced");
  EXPECT_EQ(tuning.without_schedule.front().reason,
            "8 tokens cannot be cut into 16 equal blocks, as sliced (k=2) qkv requires; choose 16 or a multiple of it");
}

TEST_F(TuneTest, AFrameworkThatCannotSplitSoFewTokensIsNotABaseline) {
  PlanSpace few_tokens = space(8, 1);
  few_tokens.base.seq = 8;
  few_tokens.wish = {.tensor = 8};
  few_tokens.framework = load_framework("mindspeed");  // sliced, which needs 16 tokens
  const Tuning tuning = tune(few_tokens, {});
  ASSERT_FALSE(tuning.best.empty());
  EXPECT_FALSE(tuning.baseline);
  EXPECT_FALSE(tuning.fastest_baseline);
}

TEST_F(TuneTest, BreaksTiesByLessMemory) {
  TuneOptions options{.keep = 12};
  const Tuning fastest = tune(space(8, 16), fastest_alone);
  options.rule = {.difference = 0.3, .probability = 0.8};
  const Tuning tied = tune(space(8, 16), options);
  EXPECT_GT(tied.ties, fastest.ties);
  EXPECT_FALSE(tied.tie_rule.empty());
  EXPECT_NE(tied.tie_rule, "fewer GPUs") << "all plans have eight";
  for (const TunedPlan& plan : tied.best) {
    EXPECT_TRUE(plan.error.has_value());
    EXPECT_TRUE(!plan.ties || plan.step.memory.total() >= tied.best.front().step.memory.total());
  }
  EXPECT_TRUE(tied.best.front().ties);
  EXPECT_GE(tied.best.front().step.time, fastest.best.front().step.time);
}

TEST_F(TuneTest, KeepsFixedDegrees) {
  PlanSpace wished = space(8, 16);
  const std::size_t unrestricted = plans_of(wished).size();
  wished.wish = {.tensor = 4, .micro_batch = 2, .recompute = Recompute::selective};
  const std::vector<TrainingPlan> plans = plans_of(wished);
  EXPECT_FALSE(plans.empty());
  EXPECT_LT(plans.size(), unrestricted / 4);
  for (const TrainingPlan& plan : plans) {
    EXPECT_EQ(plan.tensor, 4);
    EXPECT_EQ(plan.micro_batch, 2);
    EXPECT_EQ(plan.recompute, Recompute::selective);
    EXPECT_TRUE(plan.sequence_parallel);
  }
}

TEST_F(TuneTest, ExpertRanksArePowersOfTwoOrTheLargestCommonDivisor) {
  model_.experts = Experts{.count = 48, .active = 2, .ffn = 1024};
  PlanSpace mixture = space(24, 24);
  mixture.wish = {.tensor = 1, .pipeline = 1, .context = 1, .micro_batch = 1, .zero = Zero::optimizer};
  mixture.wish.recompute = Recompute::none;
  const auto degrees = [&] {
    std::vector<std::int64_t> expert_ranks;
    for (const TrainingPlan& plan : plans_of(mixture)) {
      expert_ranks.push_back(plan.expert);
    }
    return expert_ranks;
  };
  EXPECT_EQ(degrees(), (std::vector<std::int64_t>{1, 2, 4, 8, 24}));
  model_.experts->count = 16;  // 24 replicas divide into groups of eight that share the experts.
  EXPECT_EQ(degrees(), (std::vector<std::int64_t>{1, 2, 4, 8}));
  model_.experts->count = 7;
  EXPECT_EQ(degrees(), (std::vector<std::int64_t>{1}));
  model_.experts->count = 48;
  mixture.wish.expert = 12;
  EXPECT_EQ(degrees(), (std::vector<std::int64_t>{12}));
  model_.experts.reset();
  mixture.wish.expert.reset();
  EXPECT_EQ(degrees(), (std::vector<std::int64_t>{1}));
}

TEST_F(TuneTest, NoFixedNumberOfExpertRanksBeatsTheFreeChoice) {
  const Transformer mixture = load_model("deepseek-v3");
  TrainingPlan data_parallel;
  data_parallel.data = 256;
  const Machine nodes = resized(load_machine("dgx-h100-x2"), data_parallel);
  PlanSpace mixture_space{
      .model = &mixture, .machine = &nodes, .gpus = 256, .base = {.global_batch = 1024, .seq = 4096}};
  const Duration free_choice = tune(mixture_space, fastest_alone).best.front().step.time;
  Duration shortest = Duration::max();
  for (std::int64_t ranks = 1; ranks <= 256; ranks *= 2) {
    mixture_space.wish.expert = ranks;
    const Tuning tuning = tune(mixture_space, fastest_alone);
    shortest = tuning.best.empty() ? shortest : std::min(shortest, tuning.best.front().step.time);
  }
  EXPECT_EQ(free_choice, shortest);
}

TEST_F(TuneTest, TheBestOfFewPlansIsTheFastestWithAllStrategies) {
  PlanSpace small_space = space(4, 4);
  small_space.wish = {.pipeline = 1, .context = 1, .micro_batch = 1, .recompute = Recompute::none};
  const Tuning tuning = tune(small_space, fastest_alone);
  StructureCache structures;
  SiteTimes times(structures, machine_);
  Duration fastest = Duration::max();
  for (const TrainingPlan& plan : plans_of(small_space)) {
    const StepPoint point{.model = &model_, .machine = &machine_, .plan = plan, .strategies = strategies_for_steps()};
    fastest = std::min(fastest, predict_step(point, times).time);
  }
  EXPECT_EQ(tuning.best.front().step.time, fastest);
  EXPECT_EQ(tuning.plans, plans_of(small_space).size());
}

TEST_F(TuneTest, FindsTheSameFastestPlansAsSimulatingEveryPipeline) {
  model_.experts = Experts{.count = 16, .active = 2, .ffn = 1024};
  const PlanSpace eight = space(8, 16);
  const std::vector<TrainingPlan> plans = plans_of(eight);
  StructureCache structures;
  SiteTimes times(structures, machine_);
  StepPoint point{.model = &model_, .machine = &machine_};
  std::vector<std::pair<Duration, std::size_t>> ranked;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    point.plan = plans[i];
    ranked.emplace_back(predict_step(point, times).time, i);
  }
  std::sort(ranked.begin(), ranked.end());
  const FastestPlans twelve = fastest_plans(point, plans, times, 12);
  ASSERT_EQ(twelve.best.size(), 12U);
  for (std::size_t i = 0; i < twelve.best.size(); ++i) {
    const TrainingPlan& expected = plans[ranked[i].second];
    EXPECT_EQ(twelve.best[i].step.time, ranked[i].first);
    EXPECT_EQ(twelve.best[i].plan.expert, expected.expert);
    EXPECT_EQ(twelve.best[i].plan.micro_batch, expected.micro_batch);
    EXPECT_EQ(twelve.best[i].plan.zero, expected.zero);
  }
  EXPECT_LT(twelve.priced, plans.size() / 2);
  EXPECT_EQ(fastest_plans(point, plans, times, plans.size() + 1).best.size(), plans.size());
  EXPECT_TRUE(fastest_plans(point, {}, times, 12).best.empty());
  const FastestPlans close = fastest_plans(point, plans, times, plans.size(), 0.1);
  const double limit = 1.1 * to_seconds(ranked.front().first);
  for (std::size_t i = 0; i < ranked.size() && to_seconds(ranked[i].first) <= limit; ++i) {
    ASSERT_LT(i, close.best.size());
    EXPECT_EQ(close.best[i].step.time, ranked[i].first);
  }
  EXPECT_LT(close.priced, plans.size());
}

TEST_F(TuneTest, AChoicePerSiteLiesBetweenOneForAllSitesAndTheLowerBound) {
  PlanSpace eight = space(8, 8);
  eight.wish = {.tensor = 8};
  const Tuning tuning = tune(eight, {});
  ASSERT_EQ(tuning.sites.size(), 8U);
  const Duration best = tuning.best.front().step.time;
  EXPECT_LE(best, tuning.with_single.time);
  EXPECT_LE(tuning.with_single.time, tuning.serial.time);
  EXPECT_LT(tuning.bound.time, best);
  for (const TunedSite& site : tuning.sites) {
    EXPECT_LE(site.best.time, site.serial.time);
    EXPECT_LE(site.serial.compute, site.best.ideal);
    EXPECT_LE(site.best.ideal, site.best.time);
    EXPECT_EQ(site.calculon.none, site.serial.time);
  }
}

TEST_F(TuneTest, PricesTheOtherExchangeOnlyOfContextRanks) {
  PlanSpace eight = space(8, 8);
  eight.wish = {.pipeline = 1, .context = 2};
  const Tuning gathers = tune(eight, fastest_alone);
  ASSERT_TRUE(gathers.other_exchange);
  EXPECT_NE(gathers.other_exchange->time, gathers.best.front().step.time);
  TuneOptions fixed = fastest_alone;
  fixed.other_exchange = false;
  EXPECT_FALSE(tune(eight, fixed).other_exchange);
  eight.wish.context = 1;
  EXPECT_FALSE(tune(eight, fastest_alone).other_exchange);
}

TEST_F(TuneTest, TheBoundFreesOnlyCollectivesOfTensorRanks) {
  PlanSpace eight = space(8, 8);
  eight.wish = {.tensor = 1, .pipeline = 1};
  const Tuning tuning = tune(eight, {});
  EXPECT_FALSE(frees_collectives(tuning.best.front().plan));
  TrainingPlan plan = tuning.best.front().plan;
  plan.tensor = 2;
  plan.sequence_parallel = true;
  EXPECT_TRUE(frees_collectives(plan));
  plan.sequence_parallel = false;
  EXPECT_FALSE(frees_collectives(plan));
}

TEST_F(TuneTest, AFrameworkPricesAllPlansAndItsDefaultIsTheBaseline) {
  PlanSpace eight = space(8, 16);
  EXPECT_FALSE(tune(eight, fastest_alone).baseline);
  eight.framework = load_framework("deepspeed");
  const Tuning tuning = tune(eight, fastest_alone);
  StructureCache structures;
  SiteTimes times(structures, machine_);
  StepPoint point{
      .model = &model_, .machine = &machine_, .plan = tuning.best.front().plan, .framework = eight.framework};
  ASSERT_TRUE(tuning.baseline);
  EXPECT_EQ(tuning.baseline->time, predict_step(point, times).time);
  point.strategies = {&serial_strategy};
  EXPECT_EQ(tuning.serial.time, predict_step(point, times).time);
}

TEST_F(TuneTest, TheFastestBaselineIsTheFastestPlanWithoutItsSchedules) {
  machine_ = load_machine("h100-sxm");  // async_tp does not run on A100
  PlanSpace small_space = space(4, 4);
  small_space.wish = {.pipeline = 1, .context = 1, .micro_batch = 1, .recompute = Recompute::none};
  for (const char* name : {"none", "torchtitan", "torchtitan-async-tp"}) {
    small_space.framework = load_framework(name);
    const Tuning tuning = tune(small_space, {});
    StructureCache structures;
    SiteTimes times(structures, machine_);
    Duration fastest = Duration::max();
    for (const TrainingPlan& plan : plans_of(small_space)) {
      StepPoint point{.model = &model_, .machine = &machine_, .plan = plan, .framework = small_space.framework};
      point.strategies = small_space.framework.name.empty() ? std::vector{&serial_strategy}
                                                            : strategies_by_default(small_space.framework);
      fastest = std::min(fastest, predict_step(point, times).time);
    }
    ASSERT_TRUE(tuning.fastest_baseline) << name;
    EXPECT_EQ(tuning.fastest_baseline->step.time, fastest) << name;
  }
}

/// Returns whether predict_step() finds a time.
bool is_predicted(const StepPoint& point, SiteTimes& times) {
  return test::refusal_of([&] { predict_step(point, times); }) == "accepted";
}

TEST_F(TuneTest, PlansHaveSchedulesExactlyWhereStepsArePredicted) {
  machine_ = load_machine("h100-sxm");  // async_tp does not run on A100
  PlanSpace few_tokens = space(8, 2);
  few_tokens.base.seq = 24;  // 24 and 48 tokens cannot be cut into 16 or 32 blocks
  const std::vector<std::vector<const Strategy*>> choices{{&serial_strategy}, {&sliced_strategy}, {}};
  StructureCache structures;
  std::size_t without = 0;
  for (const std::int64_t ulysses : {1, 2}) {
    few_tokens.wish.ulysses = ulysses;
    for (const char* framework : {"none", "torchtitan-async-tp"}) {
      for (const std::vector<const Strategy*>& strategies : choices) {
        SiteTimes asked(structures, machine_);
        SiteTimes priced(structures, machine_);
        StepPoint point{.model = &model_, .machine = &machine_, .framework = load_framework(framework)};
        point.strategies = strategies;
        for (const TrainingPlan& plan : plans_of(few_tokens)) {
          point.plan = plan;
          const bool has = has_schedules(point, asked);
          EXPECT_EQ(has, is_predicted(point, priced))
              << framework << ", tensor " << plan.tensor << ", ulysses " << plan.ulysses;
          without += has ? 0 : 1;
        }
        EXPECT_EQ(asked.simulated(), 0);
      }
    }
  }
  EXPECT_GT(without, 0U);
}

/// Returns a framework whose kernels run this GEMM. Their schedules, for both kinds of GEMMs, are sliced, and do not
/// exist for few tokens.
Framework framework_running(Scope site) {
  Framework framework;
  framework.name = "mine";
  auto kernels = std::make_shared<Implementation>(*load_implementation("flash_overlap"));
  kernels->sites = {SiteKind::ag_gemm, SiteKind::gemm_rs};
  framework.implementation = std::move(kernels);
  framework.implementation_sites = std::vector{site};
  return framework;
}

TEST_F(TuneTest, PlansHaveSchedulesWhereFrameworksRunTheirKernels) {
  StructureCache structures;
  StepPoint point{.model = &model_, .machine = &machine_};
  point.plan = {.tensor = 4, .sequence_parallel = true, .pipeline = 2, .global_batch = 2};
  for (const PipelineSchedule schedule : all_pipeline_schedules) {
    point.plan.schedule = schedule;
    for (const Scope site : implementation_scopes) {
      point.framework = framework_running(site);
      for (const std::int64_t seq : {20, 2048}) {  // 20 tokens cannot be cut into slices of four shards
        point.plan.seq = seq;
        SiteTimes asked(structures, machine_);
        SiteTimes priced(structures, machine_);
        EXPECT_EQ(has_schedules(point, asked), seq == 2048) << name_of(site) << " " << name_of(schedule);
        EXPECT_EQ(is_predicted(point, priced), seq == 2048) << name_of(site) << " " << name_of(schedule);
      }
    }
  }
}

TEST_F(TuneTest, FrameworksExposeCollectivesWhereTheirKernelsCannotRun) {
  StructureCache structures;
  StepPoint point{.model = &model_, .machine = &machine_};
  point.plan = {.tensor = 4, .sequence_parallel = true, .global_batch = 1, .seq = 20};
  SiteTimes times(structures, machine_);
  point.framework = framework_running(Scope::qkv);
  point.framework.implementation = nullptr;
  const Duration exposed = predict_step(point, times).time;
  point.framework = framework_running(Scope::qkv);
  point.framework.implementation_sites.reset();  // The framework then chooses the GEMMs of its kernels itself.
  EXPECT_TRUE(has_schedules(point, times));
  EXPECT_EQ(predict_step(point, times).time, exposed);
}

TEST_F(TuneTest, AModelWithoutAttentionHasNoUlyssesBlock) {
  put_kinds(kinds_of_letters("--------", false), model_);
  StructureCache structures;
  SiteTimes asked(structures, machine_);
  SiteTimes priced(structures, machine_);
  StepPoint point{.model = &model_, .machine = &machine_};
  point.plan = {.ulysses = 4, .global_batch = 1, .seq = 20};
  point.strategies = {&sliced_strategy};
  EXPECT_TRUE(is_predicted(point, priced));
  EXPECT_TRUE(has_schedules(point, asked));
}

TEST_F(TuneTest, StatesHowMuchLongerThanTheFastestTheFirstPlanTakes) {
  EXPECT_EQ(tune(space(8, 16), fastest_alone).excess_over_fastest, 0.0);
  const Tuning tied = tune(space(8, 16), {.keep = 12, .rule = {.difference = 0.3, .probability = 0.8}});
  const double first = to_seconds(tied.best[0].step.time);
  const double second = to_seconds(tied.best[1].step.time);
  EXPECT_EQ(tied.excess_over_fastest, first < second ? 0.0 : first / second - 1.0);
}

TEST_F(TuneTest, UnfusedAttentionAllowsSelectiveRecomputationButNoContext) {
  PlanSpace eight = space(8, 16);
  eight.base.fused_attention = false;
  std::size_t selective = 0;
  for (const TrainingPlan& plan : plans_of(eight)) {
    EXPECT_EQ(plan.context, 1);
    selective += plan.recompute == Recompute::selective ? 1 : 0;
  }
  EXPECT_EQ(selective, plans_of(eight).size() / 3);
  eight.base.fused_attention = true;
  for (const TrainingPlan& plan : plans_of(eight)) {
    EXPECT_NE(plan.recompute, Recompute::selective);
  }
}

TEST_F(TuneTest, PlansOfAFrameworkRecomputeItsSelectionWhereThatFreesMemory) {
  PlanSpace eight = space(8, 16);
  const auto share_of_selective = [&](const char* framework) {
    eight.framework = load_framework(framework);
    const std::vector<TrainingPlan> plans = plans_of(eight);
    return static_cast<double>(std::ranges::count(plans, Recompute::selective, &TrainingPlan::recompute)) /
           static_cast<double>(plans.size());
  };
  EXPECT_EQ(share_of_selective("torchtitan"), 1.0 / 3.0);
  EXPECT_EQ(share_of_selective("megatron-lm"), 0.0);
}

// Llama's down projection of 1024 rows fills 1.8 waves of an A100; each half of it fills one wave.
TEST_F(TuneTest, CuttingAGemmMakesItNoFaster) {
  const Transformer llama = load_model("llama-3.1-8b");
  PlanSpace eight{.model = &llama, .machine = &machine_, .gpus = 8, .base = {.global_batch = 32, .seq = 1024}};
  eight.wish = {.tensor = 4, .pipeline = 1, .micro_batch = 1};
  const Tuning tuning = tune(eight, {});
  const auto down = std::find_if(tuning.sites.begin(), tuning.sites.end(),
                                 [](const TunedSite& site) { return site.scope == Scope::down; });
  ASSERT_NE(down, tuning.sites.end());
  EXPECT_GE(down->best.time, down->serial.compute);
  EXPECT_LE(tuning.bound.time, tuning.best.front().step.time);
}

/// Returns jitter in which three ops in 10,000 stall for 300 us or more, and nothing else varies.
MonteCarloOptions rare_stalls() {
  Jitter jitter;
  jitter.stall_probability.value = 3e-4;
  jitter.stall_scale.value = 300us;
  jitter.stall_shape.value = 2.5;
  return {.jitter = std::make_shared<const JitterTables>(jitter), .samples = 10'000};
}

TuneOptions sampled_by(Minimize minimize) {
  MonteCarloOptions stalls = rare_stalls();
  stalls.samples = 2000;
  return {.minimize = minimize, .monte_carlo = stalls, .kernel_jitter = stalls.jitter};
}

TEST_F(TuneTest, TheP99OfAStepIsLowestWithTheSchedulesChosenForIt) {
  PlanSpace eight = space(8, 8);
  eight.wish = {.tensor = 8, .micro_batch = 8};
  const Tuning by_p99 = tune(eight, sampled_by(Minimize::p99));
  const Tuning by_mean = tune(eight, sampled_by(Minimize::mean));
  ASSERT_EQ(by_p99.sites.size(), 8U);
  ASSERT_TRUE(by_p99.tails.has_value());
  EXPECT_LE(by_p99.tails->first.p99, by_p99.tails->second.p99);
  EXPECT_EQ(by_p99.tails->first.p99, by_mean.tails->second.p99);
  EXPECT_EQ(by_p99.tails->second.mean, by_mean.tails->first.mean);
  for (std::size_t i = 0; i < by_p99.sites.size(); ++i) {
    const SampledChoice& choice = *by_p99.sites[i].sampled;
    EXPECT_LE(choice.by_mean.times.mean, choice.by_p99.times.mean);
    EXPECT_EQ(by_p99.sites[i].best.time, choice.by_p99.schedule.time);
    EXPECT_EQ(by_mean.sites[i].best.time, choice.by_mean.schedule.time);
  }
  // Two ops on each of eight ranks stall once in 209 runs, so serial's p99 has no stall and equals its time without
  // jitter.
  const SampledChoice& qkv = *by_p99.sites.front().sampled;
  EXPECT_EQ(qkv.serial.times.p99, qkv.serial.schedule.time);
  EXPECT_GT(qkv.serial.times.mean, qkv.serial.schedule.time);
  // A step has hundreds of runs, so it certainly has stalls, and its p99 lies above the time without jitter.
  EXPECT_GT(by_p99.tails->first.p50, by_p99.best.front().step.time);
  EXPECT_GT(by_p99.tails->first.p99, by_p99.tails->first.p50);
}

TEST_F(TuneTest, TheSampledP99MatchesStepPercentilesIfOnlyGpusVary) {
  PlanSpace eight = space(8, 8);
  eight.wish = {.tensor = 8, .micro_batch = 8};
  Jitter jitter;
  jitter.rank_sigma.value = 0.02;
  const auto gpus = std::make_shared<const JitterTables>(jitter);
  jitter.rank_sigma.value = 0.0;
  // The options are set one by one, because g++ 12 warns of an uninitialized pointer in a single expression.
  TuneOptions options;
  options.rank_sigma = 0.02;
  options.minimize = Minimize::p99;
  options.monte_carlo.jitter = gpus;
  options.monte_carlo.samples = 100;
  options.kernel_jitter = std::make_shared<const JitterTables>(jitter);
  const Tuning tuning = tune(eight, options);
  StructureCache structures;
  SiteTimes times(structures, machine_);
  for (const TunedSite& site : tuning.sites) {
    times.prefer(site_point(tuning.best.front().plan, site.shape, site.scope), site.best);
  }
  StepPoint point{.model = &model_, .machine = &machine_, .plan = tuning.best.front().plan};
  point.strategies = strategies_for_steps();
  point.rank_sigma = 0.02;
  const double tables = to_seconds(step_percentiles(point, times).p99);
  // The sampled percentiles assume that a step's time is linear in the slowness of its GPU, but hidden communication
  // makes it nonlinear.
  EXPECT_NEAR(to_seconds(tuning.tails->first.p99) / tables, 1.0, 2e-3);
}

TEST_F(TuneTest, LatentAttentionAllowsNoContextParallelism) {
  model_ = load_model("deepseek-v3");
  PlanSpace eight = space(8, 8);
  eight.base.seq = 8192;
  for (const TrainingPlan& plan : plans_of(eight)) {
    EXPECT_EQ(plan.context, 1);
  }
}

TEST_F(TuneTest, HybridHasStateSpaceProjectionsAmongItsSites) {
  model_ = load_model("nemotron-h-8b");
  machine_ = load_machine("h100-sxm");
  PlanSpace eight = space(8, 8);
  eight.wish = {.tensor = 8, .pipeline = 1, .micro_batch = 1};
  const Tuning tuning = tune(eight, {});
  ASSERT_EQ(tuning.sites.size(), 12U);
  EXPECT_EQ(tuning.sites[4].name, "mamba_in");
  EXPECT_LE(tuning.sites[4].best.time, tuning.sites[4].serial.time);
}

TEST_F(TuneTest, PruningSchedulesKeepsTheWinners) {
  StructureCache structures;
  SiteTimes times(structures, machine_);
  const SitePoint site{.model = &model_, .scope = Scope::qkv, .ranks = 4, .tokens = 4096};
  const auto lowest = [](const std::vector<SampledSite>& samples, Duration SampledTimes::*statistic) {
    Duration shortest = Duration::max();
    for (const SampledSite& sample : samples) {
      shortest = std::min(shortest, sample.times.*statistic);
    }
    return shortest;
  };
  const MonteCarloOptions options = rare_stalls();
  const std::vector<SampledSite> sampled_sites = times.sampled(site, strategies_for_steps(), options);
  Duration mean = Duration::max();
  Duration p99 = Duration::max();
  std::size_t simulated_schedules = 0;
  for (const Strategy* strategy : strategies_for_steps()) {
    for (const StrategyOptions& schedule : schedules_to_try(*strategy, kinds_of(site.scope), site.ranks)) {
      // `sampled()` prices sites inside a step, without launch costs and at the sustained clock. The points must match
      // that.
      Point point{.model = model_, .machine = machine_, .scope = site.scope, .ranks = site.ranks, .seq = site.tokens};
      point.machine.accelerator.launch_cost.value = point.machine.accelerator.event_cost.value = Duration::zero();
      point.machine.link.peer.issue_cost.value = point.machine.link.collective.issue_cost.value = Duration::zero();
      GemmParameters& gemm = point.machine.accelerator.matrix_units[index_of(DType::bf16)]->gemm;
      gemm.burst_efficiency.value *= gemm.sustained_share.value;
      gemm.sustained_share.value = 1.0;
      point.monte_carlo = options;
      Predictor predictor(structures);
      Prediction prediction = predictor.predict(point, *strategy, schedule);
      predictor.add_tails(point, prediction);
      mean = std::min(mean, prediction.tails->percentiles.mean.value);
      p99 = std::min(p99, prediction.tails->percentiles.p99.value);
      ++simulated_schedules;
    }
  }
  EXPECT_LT(sampled_sites.size(), simulated_schedules);
  EXPECT_EQ(lowest(sampled_sites, &SampledTimes::p99), p99);
  EXPECT_NEAR(to_seconds(lowest(sampled_sites, &SampledTimes::mean)), to_seconds(mean), 2e-12);
}

TEST_F(TuneTest, TheResultIsEmptyIfNoPlanFitsInMemory) {
  model_ = load_model("llama-3.1-405b");
  const Tuning tuning = tune(space(8, 8), {});
  EXPECT_GT(tuning.plans, 0U);
  EXPECT_EQ(tuning.fitting, 0U);
  EXPECT_TRUE(tuning.best.empty());
  EXPECT_DOUBLE_EQ(tuning.memory_limit, 0.9 * static_cast<double>(machine_.accelerator.hbm_capacity.count));
  const std::vector<TrainingPlan> plans = plans_of(space(8, 8));
  const auto smallest = std::ranges::min_element(
      plans, {}, [&](const TrainingPlan& plan) { return largest_step_memory(model_, plan, {}).total().count; });
  EXPECT_EQ(tuning.least_memory, largest_step_memory(model_, *smallest, {}).total());
  EXPECT_GT(static_cast<double>(tuning.least_memory.count), tuning.memory_limit);
}

TEST_F(TuneTest, RefusesABatchThatNoLayoutDivides) {
  PlanSpace undivided = space(8, 3);
  undivided.wish = {.data = 2};
  EXPECT_THROW((void)tune(undivided, {}), ConfigError);
}

TEST(MeasuredTuning, OneLayoutTakesTheSameTimesAsInRun) {
  const Settings settings =
      test::settings_of({"model=llama-3.1-8b", "hardware=h100-sxm", "scope=step", "framework=torchtitan",
                         "strategy.name=all", "batch=16", "ranks=2", "parallel.data=4", "parallel.zero=1",
                         "parallel.pipeline=1", "parallel.context=1", "step.micro_batch=1", "step.recompute=none"});
  Library library;
  library.load(settings);
  StepPoints points(library);
  const double predicted = points.rows(settings).front().number("time_ms");
  TuneOptions options;
  options.evidence = points.evidence_of({settings, from_seconds(0.7e-3 * predicted)});
  points.correct_by(*options.evidence);
  const Framework framework = load_framework("torchtitan");
  const Settings complete = with_defaults_of(framework, settings);
  const Transformer model = load_model("llama-3.1-8b");
  const Machine machine = load_machine("h100-sxm");
  const Tuning tuning = tune({.model = &model,
                              .machine = &machine,
                              .gpus = 8,
                              .base = base_of(complete),
                              .wish = wish_of(complete),
                              .framework = framework},
                             options);
  ASSERT_EQ(tuning.plans, 1U);
  std::map<std::string, double, std::less<>> times;
  for (const StepRow& row : points.rows(settings)) {
    times.emplace(row.text("strategy"), 1e-3 * row.number("time_ms"));
  }
  constexpr double rounding = 1e-9;
  ASSERT_TRUE(tuning.baseline);
  EXPECT_NEAR(to_seconds(tuning.baseline->time), times.at("torchtitan"), rounding);
  EXPECT_NEAR(to_seconds(tuning.serial.time), times.at("serial"), rounding);
  EXPECT_NEAR(to_seconds(tuning.with_single.time), times.find(tuning.single->name)->second, rounding);
  ASSERT_TRUE(tuning.fastest_baseline);
  EXPECT_EQ(tuning.fastest_baseline->step.time, tuning.baseline->time);
}

TEST(Calculon, FormulasMatchTheirSource) {
  // Communication slows compute to 85%, so 850 us take 1000 us. Communication of 500 us is hidden and adds 0.15 of its
  // time during three of the four tiles.
  const CalculonForms hidden = calculon_forms({.compute = 850us, .communication = 500us, .ranks = 4});
  EXPECT_EQ(hidden.none, 1350us);
  EXPECT_EQ(hidden.ring, Duration{906'250'000});  // 850 + 3/4 x 0.15 x 500
  EXPECT_EQ(hidden.pipe, hidden.ring + 125us);
  const CalculonForms exposed = calculon_forms({.compute = 850us, .communication = 2000us, .ranks = 4});
  EXPECT_EQ(exposed.ring, Duration{1'712'500'000});  // 850 / 4 + 3/4 x 2000
  EXPECT_EQ(exposed.pipe, exposed.ring + 500us);
}

}  // namespace
}  // namespace commfuse
