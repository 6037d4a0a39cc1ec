// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/verdict.h"

#include <gtest/gtest.h>

namespace commfuse {
namespace {

TEST(Verdict, AWinNeedsADifferenceAboveTwoPercent) {
  EXPECT_FALSE(verdict_of(std::vector<Contender>{{1020.0}, {1000.0}}, {}).wins());
  const Verdict verdict = verdict_of(std::vector<Contender>{{2000.0}, {1021.0}, {1000.0}}, {});
  EXPECT_TRUE(verdict.wins());
  EXPECT_EQ(verdict.order, (std::vector<std::size_t>{2, 1, 0}));
  EXPECT_EQ(verdict.front, std::vector<std::size_t>{2});
  EXPECT_FALSE(verdict.probability) << "no contender has an error";
}

TEST(Verdict, AWinNeedsAProbabilityOfEightyPercent) {
  // The errors and the probability of 79% are those of the example in docs/metrics.md. The second contender takes 3%
  // longer, so only the probability prevents a win.
  std::vector<Contender> two{{1000.0, 0.04, 0.79}, {1030.0, 0.025, 0.21}};
  EXPECT_FALSE(verdict_of(two, {}).wins());
  EXPECT_EQ(verdict_of(two, {}).front, (std::vector<std::size_t>{0, 1}));
  EXPECT_NEAR(*verdict_of(two, {}).probability, 0.79, 1e-12);
  two[1].win_probability = 0.2;
  EXPECT_TRUE(verdict_of(two, {}).wins()) << "80% is enough";
}

TEST(Verdict, BothLimitsCanBeSet) {
  const std::vector<Contender> two{{1000.0, 0.04, 0.79}, {1030.0, 0.025, 0.21}};
  EXPECT_TRUE(verdict_of(two, {.difference = 0.02, .probability = 0.75}).wins());
  EXPECT_FALSE(verdict_of(two, {.difference = 0.03, .probability = 0.75}).wins());
}

TEST(Verdict, ASlowScheduleTiesTooIfItIsUncertain) {
  // The second is 5% slower with near certainty; the third is 30% slower and uncertain.
  const std::vector<Contender> three{{100.0, 0.01, 0.99}, {105.0, 0.01, 0.01}, {130.0, 0.6, 0.3}};
  const Verdict verdict = verdict_of(three, {});
  EXPECT_EQ(verdict.front, (std::vector<std::size_t>{0, 2}));
  EXPECT_NEAR(*verdict.probability, 0.7, 1e-12);
}

TEST(Verdict, SchedulesOfDifferentPointsAreComparedByTheirErrors) {
  // ln(1.1) = 0.0953 over hypot(0.03, 0.04) = 0.05 is 1.906 standard errors: 95.2% by error_tail.h.
  EXPECT_NEAR(*probability_faster({100.0, 0.03}, {110.0, 0.04}), 0.9524, 1e-4);
  // The second contender's win probability of 0.9 refers to its own point and does not affect this comparison.
  EXPECT_NEAR(*probability_faster({100.0, 0.03}, {110.0, 0.04, 0.9}), 0.9524, 1e-4);
  EXPECT_FALSE(probability_faster({100.0, 0.03}, {110.0}));
  EXPECT_EQ(*probability_faster({100.0, 0.0}, {110.0, 0.0}), 1.0);
  EXPECT_EQ(*probability_faster({100.0}, {100.0}), 0.5);
}

TEST(Verdict, EqualTimesTieAndALoneScheduleWins) {
  EXPECT_EQ(verdict_of(std::vector<Contender>{{0.0}, {0.0}}, {}).front.size(), 2U);
  EXPECT_TRUE(verdict_of(std::vector<Contender>{{7.0}}, {}).wins());
}

TEST(TieBreak, FewerGpusThenLessMemoryThenFewerKindsOfParallelism) {
  const auto broken = [](const std::vector<TiedPlan>& plans) { return break_tie(plans); };
  EXPECT_EQ(broken({{64, 40.0, 2}, {32, 70.0, 3}}).chosen, 1U);
  EXPECT_EQ(broken({{64, 40.0, 2}, {32, 70.0, 3}}).reason, "fewer GPUs");
  EXPECT_EQ(broken({{32, 70.0, 2}, {32, 40.0, 3}, {64, 10.0, 1}}).chosen, 1U);
  EXPECT_EQ(broken({{32, 70.0, 2}, {32, 40.0, 3}, {64, 10.0, 1}}).reason, "less memory");
  // The reason separates the chosen plan from the best prediction among the others, whatever the third plan needs.
  EXPECT_EQ(broken({{64, 40.0, 2}, {32, 40.0, 2}, {32, 70.0, 2}}).reason, "fewer GPUs");
  EXPECT_EQ(broken({{32, 40.0, 2}, {64, 40.0, 2}, {32, 70.0, 2}}).reason, "fewer GPUs");
  EXPECT_EQ(broken({{32, 40.0, 3}, {32, 40.0, 2}}).reason, "fewer kinds of parallelism");
  EXPECT_EQ(broken({{32, 40.0, 2}, {32, 40.0, 2}}).chosen, 0U);
  EXPECT_EQ(broken({{32, 40.0, 2}, {32, 40.0, 2}}).reason, "a better prediction");
}

TEST(TieBreak, ChoosesAmongPlansWithinTheDifferenceOfAWin) {
  const PlanContender fastest{.objective = {100.0}, .plan = {8, 50.0, 2}};
  const PlanContender close{.objective = {101.0}, .plan = {8, 40.0, 2}};
  const PlanContender far{.objective = {110.0}, .plan = {8, 10.0, 1}};
  const PlanContender unsure{.objective = {.time = 110.0, .win_probability = 0.4}, .plan = {8, 10.0, 1}};
  const auto chosen = [](const std::vector<PlanContender>& plans) {
    const PlanChoice choice = choose_plan(plans, {});
    return std::pair(choice.chosen, choice.reason);
  };
  EXPECT_EQ(chosen({fastest, far}), std::pair(std::size_t{0}, std::string{}));
  EXPECT_EQ(chosen({fastest, close, far}), std::pair(std::size_t{1}, std::string("less memory")));
  EXPECT_EQ(chosen({far, close, fastest}), std::pair(std::size_t{1}, std::string("less memory")));
  EXPECT_EQ(chosen({fastest, close, unsure}),
            std::pair(std::size_t{1}, std::string("less memory among the 2 within 2%")));
  EXPECT_EQ(chosen({fastest, unsure}), std::pair(std::size_t{0}, std::string("a lead of more than 2%")));
}

TEST(Verdict, NamesAreListed) {
  EXPECT_EQ(names_in_words(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(names_in_words(std::vector<std::string>{"a", "b"}), "a and b");
  EXPECT_EQ(names_in_words(std::vector<std::string>{"a", "b", "c"}), "a, b and c");
}

}  // namespace
}  // namespace commfuse
