// SPDX-License-Identifier: Apache-2.0
#include "reports/savings.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <vector>

#include "reports/commas.h"
#include "reports/plan_verdicts.h"

namespace commfuse::reports {
namespace {

using namespace std::chrono_literals;

ResultRow row(const char* strategy, Duration makespan) {
  ResultRow row;
  row.strategy = strategy;
  row.analysis.critical.makespan = makespan;
  return row;
}

ResultRow implementation_row(const char* name, Duration makespan, double beats_serial) {
  ResultRow implementation = row(name, makespan);
  implementation.implements = "fused_kernel";
  implementation.beats_serial = beats_serial;
  return implementation;
}

std::optional<PayVerdict> verdict_on(const std::vector<ResultRow>& rows) {
  std::vector<const ResultRow*> ranking;
  for (const ResultRow& row : rows) {
    ranking.push_back(&row);
  }
  std::ranges::stable_sort(ranking, {}, [](const ResultRow* row) { return row->analysis.critical.makespan; });
  return pay_verdict(ranking, {.difference = 0.02, .probability = 0.8});
}

TEST(PayVerdict, TakesTheFastestIdealScheduleWithoutImplementations) {
  const std::vector<ResultRow> rows{row("serial", 1000us), row("sliced", 900us), row("commfuse", 750us)};
  const auto verdict = verdict_on(rows);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->overlap, &rows[2]);
  EXPECT_EQ(verdict->serial, &rows[0]);
  EXPECT_DOUBLE_EQ(verdict->saved, 0.25);
  EXPECT_EQ(verdict->pays, Pays::yes);
  EXPECT_FALSE(verdict->probability);
  EXPECT_FALSE(verdict_on({row("sliced", 900us), row("commfuse", 750us)}));
  EXPECT_FALSE(verdict_on({row("serial", 900us)}));
}

TEST(PayVerdict, TakesTheFastestImplementationThatClearlyPays) {
  const std::vector<ResultRow> rows{row("serial", 1000us), implementation_row("unsure", 700us, 0.7),
                                    implementation_row("sure", 800us, 0.9), implementation_row("slow", 1200us, 0.1)};
  const auto verdict = verdict_on(rows);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->overlap, &rows[2]);
  EXPECT_EQ(verdict->pays, Pays::yes);
  const std::vector<ResultRow> unsure{row("serial", 1000us), implementation_row("unsure", 700us, 0.7)};
  EXPECT_EQ(verdict_on(unsure)->pays, Pays::close);
  const std::vector<ResultRow> slow{row("serial", 1000us), implementation_row("slow", 1200us, 0.1)};
  EXPECT_EQ(verdict_on(slow)->pays, Pays::no);
  EXPECT_DOUBLE_EQ(*verdict_on(slow)->probability, 0.9);
  EXPECT_NEAR(verdict_on(slow)->saved, -0.2, 1e-15);
}

TEST(PayVerdict, AnImplementationThatOverlapsNothingDoesNotCount) {
  ResultRow in_switch = implementation_row("torch_multimem", 800us, 0.97);
  in_switch.implements = "serial";
  const std::vector<ResultRow> rows{row("serial", 1000us), in_switch, implementation_row("tokenweave", 1350us, 0.02)};
  const auto verdict = verdict_on(rows);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->overlap, &rows[2]);
  EXPECT_EQ(verdict->pays, Pays::no);
  EXPECT_FALSE(verdict_on({rows[0], rows[1]}));
}

TEST(PayVerdict, ADifferenceBelowTheRuleIsTooClose) {
  EXPECT_EQ(verdict_on({row("serial", 1000us), row("commfuse", 985us)})->pays, Pays::close);
  EXPECT_EQ(verdict_on({row("serial", 1000us), row("commfuse", 1010us)})->pays, Pays::close);
}

/// Rows of an L40S: a schedule that is not the fastest saves 7.5%, but is only 63% sure to beat serial.
TEST(PayVerdict, AnUnsureScheduleThatIsNotTheFastestIsTooClose) {
  const ResultRow serial = row("serial", 53092us);
  const ResultRow fastest = row("sliced", 47503us);
  ResultRow unsure = row("commfuse", 49124us);
  unsure.beats_serial = 0.63;
  const PayVerdict verdict = pay_verdict(unsure, serial, fastest, {.difference = 0.02, .probability = 0.8});
  EXPECT_EQ(verdict.pays, Pays::close);
  EXPECT_EQ(verdict.probability, 0.63);
}

TEST(SavingTally, HasTheMedianTheMiddleEightyPercentAndTheBest) {
  SavingTally tally;
  for (int i = 0; i <= 10; ++i) {
    tally.add(0.03125 * (i - 2), i < 2 ? Pays::no : i == 2 ? Pays::close : Pays::yes);
  }
  const SavingCount count = tally.count();
  EXPECT_EQ(count.points, 11U);
  EXPECT_EQ(count.pays, 8U);
  EXPECT_EQ(count.close, 1U);
  EXPECT_EQ(count.loses, 2U);
  EXPECT_DOUBLE_EQ(count.median, 3 * 0.03125);
  EXPECT_DOUBLE_EQ(count.low, -0.03125);
  EXPECT_DOUBLE_EQ(count.high, 7 * 0.03125);
  EXPECT_DOUBLE_EQ(count.best, 8 * 0.03125);
  EXPECT_EQ(SavingTally().count().points, 0U);
}

TEST(SavingTally, IsOneSentence) {
  const SavingCount count{.points = 12345, .pays = 12000, .close = 300, .loses = 45, .median = 0.125};
  EXPECT_EQ(
      savings_in_words(count),
      "Over 12,345 points overlap saves a median of 12.5% of serial's time: it pays at 12,000, loses at 45 and is "
      "too close to call at 300.");
  EXPECT_EQ(savings_in_words({.points = 2, .loses = 2, .median = -0.05}, "plans", "megatron-lm"),
            "Over 2 plans overlap takes a median of 5.0% more time than megatron-lm: it loses at all of them.");
  EXPECT_EQ(savings_in_words({.points = 1, .pays = 1, .median = 0.5}), "");
}

TEST(Commas, AppearInNumbersOfFiveDigitsOrMore) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(9999), "9999");
  EXPECT_EQ(with_commas(10000), "10,000");
  EXPECT_EQ(with_commas(123456), "123,456");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
  EXPECT_EQ(with_commas(1000000), "1,000,000");
}

StepRow step(std::int64_t gpus, const char* strategy, double time_ms, bool fits = true) {
  StepRow row;
  for (const auto& [name, text] :
       {std::pair{"model", "m"}, std::pair{"hardware", "h"}, std::pair{"scope", "step"}, std::pair{"dtype", "bf16"}}) {
    row.add(name, std::string(text));
  }
  row.add("gpus", gpus);
  row.add("strategy", std::string(strategy));
  row.add("time_ms", time_ms);
  row.add("fits", fits);
  return row;
}

TEST(PlanSavings, TheMostDecisivePlanFitsTheMemory) {
  const std::vector<StepRow> rows{step(2, "serial", 100.0, false), step(2, "commfuse", 50.0, false),
                                  step(4, "serial", 100.0),        step(4, "commfuse", 90.0),
                                  step(8, "serial", 100.0),        step(8, "sliced", 99.0),
                                  step(8, "commfuse", 80.0)};
  const PlanSavings savings = plan_savings(rows);
  ASSERT_TRUE(savings.decisive);
  EXPECT_EQ(*savings.decisive, 2U);
  EXPECT_EQ(savings.baseline, "serial");
  EXPECT_EQ(savings.count.points, 2U) << "a plan that does not fit counts nowhere";
  EXPECT_EQ(savings.count.pays, 2U);
  EXPECT_NEAR(savings.count.best, 0.2, 1e-7);
  const std::vector<const StepRow*> plan{&rows[4], &rows[5], &rows[6]};
  ASSERT_TRUE(plan_saving(plan));
  EXPECT_EQ(plan_saving(plan)->overlap, &rows[6]);
  EXPECT_NEAR(plan_saving(plan)->saved, 0.2, 1e-15);
}

TEST(PlanSavings, NothingPaysWhereNoPlanFits) {
  const std::vector<StepRow> rows{step(2, "serial", 100.0, false), step(2, "commfuse", 50.0, false),
                                  step(4, "serial", 100.0, false), step(4, "commfuse", 90.0, false)};
  const PlanSavings savings = plan_savings(rows);
  EXPECT_FALSE(savings.decisive);
  EXPECT_FALSE(savings.best);
  EXPECT_EQ(savings.count.points, 0U);
}

// The most decisive plan is the one whose saving is clear, but an uncertain saving may be larger.
TEST(PlanSavings, TheBestPlanSavesTheMostEvenIfUnsure) {
  std::vector<StepRow> rows{step(2, "serial", 100.0), step(2, "commfuse", 96.0), step(4, "serial", 100.0),
                            step(4, "commfuse", 94.0)};
  rows[2].add("time_error", 0.3);
  rows[3].add("time_error", 0.3);
  rows[3].add("win_probability", 0.6);
  const PlanSavings savings = plan_savings(rows);
  ASSERT_TRUE(savings.decisive && savings.best);
  EXPECT_EQ(*savings.decisive, 0U);
  EXPECT_EQ(*savings.best, 1U);
  EXPECT_NEAR(savings.count.best, 0.06, 1e-7);
}

// A bound next to implementations cannot be run, even where no implementation has a result.
TEST(PlanSavings, ABoundIsNotOverlap) {
  std::vector<StepRow> rows{step(2, "megatron-lm", 90.0), step(2, "serial", 100.0), step(2, "sliced", 80.0),
                            step(2, "flux", 70.0)};
  rows[0].add("framework", std::string("megatron-lm"));
  rows[2].add("bound", std::string("yes"));
  rows[3].add("implements", std::string("fused_kernel"));
  rows[3].add("reason", std::string("flux needs NVLink"));
  EXPECT_FALSE(plan_saving(std::vector<const StepRow*>{&rows[0], &rows[1], &rows[2], &rows[3]}));
  EXPECT_EQ(plan_savings(rows).count.points, 0U);
}

// all_reduce, the schedule of inference engines, hides no communication: it is a baseline as serial is.
TEST(PlanSavings, AllReduceIsABaselineAndNotOverlap) {
  const std::vector<StepRow> rows{step(2, "all_reduce", 90.0), step(2, "serial", 100.0),     step(2, "sliced", 120.0),
                                  step(2, "commfuse", 150.0),  step(4, "all_reduce", 125.0), step(4, "serial", 100.0),
                                  step(4, "sliced", 80.0)};
  const std::optional<PlanSaving> loss = plan_saving(std::vector{&rows[0], &rows[1], &rows[2], &rows[3]});
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->baseline, &rows[0]);
  EXPECT_EQ(loss->overlap, &rows[2]);
  EXPECT_EQ(loss->pays, Pays::no);
  EXPECT_NEAR(loss->saved, -1.0 / 3.0, 1e-15);
  const PlanSavings savings = plan_savings(rows);
  EXPECT_EQ(savings.count.points, 2U);
  EXPECT_EQ(savings.count.pays, 1U);
  EXPECT_EQ(savings.count.loses, 1U);
  EXPECT_EQ(savings.baseline, "all_reduce or serial");
  EXPECT_FALSE(plan_saving(std::vector{&rows[0], &rows[1]}));
}

}  // namespace
}  // namespace commfuse::reports
