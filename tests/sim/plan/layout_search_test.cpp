// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/layout_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model/config/catalogue.h"
#include "model/strategies/strategies.h"
#include "sim/tune/tune.h"

namespace commfuse {
namespace {

class LayoutSearchTest : public ::testing::Test {
 protected:
  static LayoutTerms terms() {
    LayoutTerms terms{.memory_share = 0.9, .rank_sigma = 0.02, .communication_sigma = 0.02};
    terms.base.global_batch = 128;
    terms.base.seq = 4096;
    terms.base.gradient_dtype = DType::fp32;
    return terms;
  }

  static Machine machine(std::int64_t gpus) {
    TrainingPlan data_parallel;
    data_parallel.data = gpus;
    return resized(load_machine("dgx-h100-x2"), data_parallel);
  }
};

TEST_F(LayoutSearchTest, NoStepIsShorterThanItsBound) {
  const Transformer model = load_model("llama-3.1-8b");
  const Machine cluster = machine(64);
  StructureCache structures;
  LayoutSearch search(model, cluster, structures, terms());
  PlanSpace space{.model = &model, .machine = &cluster, .gpus = 64, .base = terms().base};
  std::size_t layouts = 0;
  std::size_t near_bound = 0;
  for (const PipelineSchedule schedule : all_pipeline_schedules) {
    space.base.schedule = schedule;
    for (const TrainingPlan& plan : plans_of(space)) {
      const Duration bound = least_step_time(search.point_of(plan), search.times());
      const Duration time = predict_step(search.point_of(plan), search.times()).time;
      EXPECT_LE(bound, time) << plan.tensor << " " << plan.pipeline << " " << plan.interleave << " " << plan.data;
      ++layouts;
      near_bound += to_seconds(time) < 1.1 * to_seconds(bound) ? 1 : 0;
    }
  }
  EXPECT_GT(layouts, 300U);
  EXPECT_GT(near_bound, layouts / 2);  // A bound that is far too low would prune nothing.
}

TEST_F(LayoutSearchTest, NoStepOfAMixtureOfExpertsIsShorterThanItsBound) {
  const Transformer model = load_model("qwen3-30b-a3b");
  const Machine cluster = machine(64);
  StructureCache structures;
  LayoutSearch search(model, cluster, structures, terms());
  const PlanSpace space{.model = &model, .machine = &cluster, .gpus = 64, .base = terms().base};
  std::set<std::int64_t> degrees;
  std::size_t layouts = 0;
  std::size_t near_bound = 0;
  for (const TrainingPlan& plan : plans_of(space)) {
    const Duration bound = least_step_time(search.point_of(plan), search.times());
    const Duration time = predict_step(search.point_of(plan), search.times()).time;
    EXPECT_LE(bound, time) << plan.tensor << " " << plan.pipeline << " " << plan.expert << " " << plan.data;
    degrees.insert(plan.expert);
    ++layouts;
    near_bound += to_seconds(time) < 1.1 * to_seconds(bound) ? 1 : 0;
  }
  EXPECT_EQ(degrees, (std::set<std::int64_t>{1, 2, 4, 8, 16, 32, 64}));
  EXPECT_GT(near_bound, layouts / 2);
}

TEST_F(LayoutSearchTest, FindsTheSameLayoutAsSimulatingAll) {
  const Transformer model = load_model("llama-3.1-8b");
  const Machine cluster = machine(32);
  StructureCache structures;
  const PlanSpace space{.model = &model, .machine = &cluster, .gpus = 32, .base = terms().base};
  for (const std::vector<const Strategy*>& strategies : {std::vector<const Strategy*>{}, strategies_for_steps()}) {
    LayoutSearch search(model, cluster, structures, terms());
    const std::optional<FoundLayout> fastest = search.fastest(32, strategies);
    ASSERT_TRUE(fastest);
    Duration shortest = Duration::max();
    for (const TrainingPlan& plan : plans_of(space)) {
      StepPoint point = search.point_of(plan);
      point.strategies = strategies;
      const StepPrediction step = predict_step(point, search.times());
      const double share =
          static_cast<double>(step.memory.total().count) / static_cast<double>(cluster.accelerator.hbm_capacity.count);
      shortest = share <= 0.9 ? std::min(shortest, step.time) : shortest;
    }
    EXPECT_EQ(fastest->step.time, shortest);
    EXPECT_LT(search.tally().priced, search.tally().fitting / 2);  // Fewer than half are simulated.
    EXPECT_LE(fastest->tail.p50, fastest->tail.p99);
  }
}

TEST_F(LayoutSearchTest, PrefersTheLayoutThatTunePutsFirst) {
  const Transformer model = load_model("phi-3-medium");
  const Machine cluster = machine(64);
  StructureCache structures;
  LayoutTerms search_terms = terms();
  search_terms.base.global_batch = 1024;
  search_terms.base.seq = 2048;
  LayoutSearch search(model, cluster, structures, search_terms);
  const PlanSpace space{.model = &model, .machine = &cluster, .gpus = 64, .base = search_terms.base};
  TuneOptions options{.memory_share = search_terms.memory_share};
  options.rank_sigma = search_terms.rank_sigma;
  options.communication_sigma = search_terms.communication_sigma;
  options.errors = false;  // A layout is chosen by the difference alone.
  const Tuning tuning = tune(space, options);
  const std::optional<FoundLayout> preferred = search.preferred(64);
  const std::optional<FoundLayout> fastest = search.fastest(64, search_terms.strategies());
  ASSERT_TRUE(preferred && fastest && !tuning.best.empty());
  EXPECT_EQ(preferred->plan.tensor, tuning.best.front().plan.tensor);
  EXPECT_EQ(preferred->plan.data, tuning.best.front().plan.data);
  EXPECT_EQ(preferred->plan.zero, tuning.best.front().plan.zero);
  EXPECT_EQ(preferred->step.time, tuning.best.front().step.time);
  EXPECT_EQ(preferred->step.memory.total(), tuning.best.front().step.memory.total());
  EXPECT_LT(preferred->step.memory.total(), fastest->step.memory.total());  // The fastest needs 65 GB, not 36.
  EXPECT_NEAR(preferred->excess_over_fastest, to_seconds(preferred->step.time) / to_seconds(fastest->step.time) - 1.0,
              1e-12);
  EXPECT_GT(preferred->excess_over_fastest, 0.0);
  EXPECT_LE(preferred->excess_over_fastest, 0.02);
  EXPECT_TRUE(preferred->reason.starts_with("less memory")) << preferred->reason;
}

TEST_F(LayoutSearchTest, ATieRuleWithoutDifferencePrefersTheFastest) {
  const Transformer model = load_model("llama-3.1-8b");
  const Machine cluster = machine(32);
  StructureCache structures;
  LayoutTerms search_terms = terms();
  search_terms.rule.difference = 0.0;
  LayoutSearch search(model, cluster, structures, search_terms);
  EXPECT_EQ(search.preferred(32)->step.time, search.fastest(32, search_terms.strategies())->step.time);
  EXPECT_EQ(search.preferred(32)->excess_over_fastest, 0.0);
}

TEST_F(LayoutSearchTest, SkipsLayoutsThatAStrategyCannotSplit) {
  const Transformer model = load_model("llama-3.1-8b");
  const Machine cluster = machine(8);
  StructureCache structures;
  LayoutTerms search_terms = terms();
  search_terms.base.seq = 3000;  // 3000 tokens divide into 8 shards, but not into 16 slices.
  LayoutSearch search(model, cluster, structures, search_terms);
  const std::optional<FoundLayout> sliced = search.fastest(8, {&sliced_strategy});
  ASSERT_TRUE(sliced);
  StepPoint point = search.point_of(sliced->plan);
  point.strategies = {&sliced_strategy};
  EXPECT_TRUE(has_schedules(point, search.times()));
  EXPECT_EQ(search.tally().refusal, "");
  search_terms.wish = {.tensor = 8, .context = 1, .micro_batch = 1};
  LayoutSearch fixed(model, cluster, structures, search_terms);
  EXPECT_FALSE(fixed.fastest(8, {&sliced_strategy}));
  EXPECT_GT(fixed.tally().fitting, 0U);
  EXPECT_EQ(fixed.tally().refusal,
            "3000 tokens cannot be cut into 16 equal blocks, as sliced (k=2) qkv requires; choose a multiple of 16, "
            "such as 2992 or 3008");
  EXPECT_TRUE(fixed.preferred(8));  // Other strategies need no slices.
}

TEST_F(LayoutSearchTest, GpuCountsAreThoseThatSomeLayoutUses) {
  const Transformer model = load_model("llama-3.1-8b");  // The model has 32 layers: stages divide 32 or 34.
  const Machine cluster = machine(64);
  StructureCache structures;
  LayoutTerms search_terms = terms();
  EXPECT_EQ(LayoutSearch(model, cluster, structures, search_terms).counts(64),
            (std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64}));
  search_terms.base.global_batch = 96;
  EXPECT_EQ(LayoutSearch(model, cluster, structures, search_terms).counts(64),
            (std::vector<std::int64_t>{1, 2, 4, 8, 16, 24, 32, 48, 64}));
  search_terms.wish.tensor = 4;
  search_terms.wish.pipeline = 2;
  search_terms.wish.context = 1;
  EXPECT_EQ(LayoutSearch(model, cluster, structures, search_terms).counts(64),
            (std::vector<std::int64_t>{8, 16, 24, 32, 48, 64}));
}

TEST_F(LayoutSearchTest, FixedDegreesWhoseProductOverflowsHaveNoCounts) {
  const Transformer model = load_model("llama-3.1-8b");
  const Machine cluster = machine(64);
  StructureCache structures;
  LayoutTerms search_terms = terms();
  search_terms.wish = {.tensor = 1 << 20, .pipeline = 16, .context = 1 << 10, .ulysses = 1 << 10, .data = 1 << 20};
  EXPECT_EQ(LayoutSearch(model, cluster, structures, search_terms).counts(64), std::vector<std::int64_t>{});
}

TEST_F(LayoutSearchTest, OmitsLayoutsThatDoNotFitInMemory) {
  const Transformer model = load_model("llama-3.1-405b");
  const Machine cluster = machine(8);
  StructureCache structures;
  LayoutSearch search(model, cluster, structures, terms());
  EXPECT_FALSE(search.fastest(8, {}));
  EXPECT_GT(search.tally().layouts, 0U);
  EXPECT_EQ(search.tally().fitting, 0U);
  EXPECT_GT(search.tally().least_memory->count, cluster.accelerator.hbm_capacity.count);
}

}  // namespace
}  // namespace commfuse
