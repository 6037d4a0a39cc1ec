// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/capacity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/strategies/strategies.h"
#include "sim/plan/kind_planner.h"
#include "sim/plan/step_error.h"
#include "sim/step/step_uncertainty.h"
#include "tests/own_folder.h"
#include "tests/sim/message_of.h"
#include "tests/sim/small_transformer.h"

namespace commfuse {
namespace {

const std::string h100 =
    "  h100: {hardware: dgx-h100-x2, price: 2, price_date: 2026-05-04, available: 256, power: 1 kW}\n";

class CapacityTest : public ::testing::Test {
 protected:
  static CapacityPlan plan(const std::string& limits, const std::string& gpus = h100,
                           const std::string& set = "model: llama-3.1-8b, seq: 4K, batch: 128") {
    std::ofstream("a.yaml") << "schema: commfuse.plan/1\ntokens: 1e11\nset: {" + set + "}\n" + limits + "\ngpus:\n" +
                                   gpus;
    return plan_capacity(load_plan("a.yaml"));
  }
  static std::string reason(const std::string& limits, const std::string& gpus = h100,
                            const std::string& set = "model: llama-3.1-8b, seq: 4K, batch: 128") {
    const CapacityPlan result = plan(limits, gpus, set);
    EXPECT_FALSE(result.answer);
    return result.kinds.at(0).reason;
  }

 private:
  OwnFolder folder_;
};

TEST_F(CapacityTest, TheAnswerIsTheCheapestOrTiesWithItInFewerDays) {
  const CapacityPlan result = plan("deadline: 3 days");
  ASSERT_EQ(result.answer, 0U);
  const CapacityKind& kind = result.kinds[0];
  double lowest_cost = kind.best()->cost.value;
  for (const CapacityRun& run : kind.runs) {
    lowest_cost = run.misses.empty() ? std::min(lowest_cost, run.cost.value) : lowest_cost;
  }
  EXPECT_LE(kind.best()->cost.value, 1.02 * lowest_cost);
  for (std::size_t i = 0; i < kind.runs.size(); ++i) {
    EXPECT_EQ(kind.runs[i].misses.empty(), kind.runs[i].days.value <= 3.0);
    EXPECT_TRUE(!kind.runs[i].misses.empty() || kind.runs[i].cost.value > 1.02 * lowest_cost ||
                1.02 * kind.runs[i].days.value >= kind.best()->days.value);
    EXPECT_EQ(kind.runs[i].gpus, kind.runs[i].layout.gpus());
    EXPECT_LT(kind.runs[i].days.low, kind.runs[i].days.value);
    EXPECT_GT(kind.runs[i].days.high, kind.runs[i].days.value);
    EXPECT_LE(kind.runs[i].memory_gb, kind.memory_limit_gb);
  }
  EXPECT_GT(kind.step_error, 0.13);  // The error consists of the model's own error and that of its parameters.
  EXPECT_LT(kind.step_error, 0.25);
}

TEST_F(CapacityTest, TheErrorOfTheModelComesFromMeasuredSteps) {
  // The errors are sqrt(0.06^2 + 0.04^2) for dense steps and sqrt(0.4^2 + 0.14^2) for experts; at least 0.13 without a
  // framework.
  const std::string dense = "model: llama-3.1-8b, seq: 4K, batch: 128";
  const std::string experts = "model: mixtral-8x7b, seq: 4K, batch: 128";
  const std::string framework = ", framework: megatron-core-2024";
  const auto error = [&](const std::string& set, const std::string& more = "") {
    return plan("deadline: 365 days" + more, h100, set).model_error;
  };
  EXPECT_EQ(error(dense), 0.13);
  EXPECT_NEAR(error(dense + framework), 0.0721, 1e-4);
  EXPECT_NEAR(error(experts), 0.4238, 1e-4);
  EXPECT_EQ(error(experts + framework), error(experts));
  EXPECT_EQ(error(dense + framework, "\nmodel_error: 0.05"), 0.05);
}

TEST_F(CapacityTest, TheErrorOfTheModelIsComparedWithThatOfRun) {
  const std::string dense = "model: llama-3.1-8b, seq: 4K, batch: 128";
  const std::string limit = "deadline: 365 days";
  const CapacityPlan ideal = plan(limit, h100, dense);
  EXPECT_EQ(ideal.model_error_source, ModelErrorSource::steps_before_settings);
  EXPECT_NEAR(ideal.model_error_of_run, 0.0721, 1e-4);
  const CapacityPlan framework = plan(limit, h100, dense + ", framework: megatron-core-2024");
  EXPECT_EQ(framework.model_error_source, ModelErrorSource::measured_steps);
  EXPECT_EQ(framework.model_error_of_run, framework.model_error);
  const CapacityPlan stated = plan(limit + "\nmodel_error: 0.05", h100, dense);
  EXPECT_EQ(stated.model_error_source, ModelErrorSource::file);
  EXPECT_EQ(stated.model_error_of_run, ideal.model_error_of_run);
  EXPECT_FALSE(ideal.has_measured_step);
}

TEST_F(CapacityTest, AMeasuredStepShiftsAndNarrowsTheDays) {
  const CapacityPlan before = plan("deadline: 30 days");
  Uncertainty doubts;
  doubts.doubts.push_back({StepDoubt{}, 0.06});
  const auto plan_with_step = [&](double factor, const std::string& hardware = "dgx-h100-x2") {
    const StepEvidence evidence = step_evidence(hardware, from_seconds(factor), from_seconds(1.0), doubts);
    return plan_capacity(load_plan("a.yaml"), &evidence);
  };
  const CapacityPlan slower = plan_with_step(1.1);
  const CapacityPlan equal = plan_with_step(1.0);
  EXPECT_LT(equal.kinds[0].step_error, before.kinds[0].step_error);
  EXPECT_LT(slower.model_error, before.model_error);
  EXPECT_TRUE(slower.has_measured_step);
  ASSERT_EQ(slower.kinds[0].runs.size(), before.kinds[0].runs.size());
  for (std::size_t i = 0; i < before.kinds[0].runs.size(); ++i) {
    const double factor = slower.kinds[0].runs[i].step_s.value / before.kinds[0].runs[i].step_s.value;
    EXPECT_GT(factor, 1.05);  // The layouts share the machine's error, which explains most of the measured difference.
    EXPECT_LE(factor, 1.1);
    EXPECT_NEAR(equal.kinds[0].runs[i].step_s.value, before.kinds[0].runs[i].step_s.value, 1e-9);
  }
  EXPECT_THROW(plan_with_step(1.1, "dgx-a100-x2"), ConfigError);
}

TEST_F(CapacityTest, AMeasuredStepCorrectsNoStepBelowTheDensePeak) {
  plan("deadline: 30 days");
  Uncertainty doubts;
  doubts.doubts.push_back({StepDoubt{}, 0.06});
  const StepEvidence evidence = step_evidence("dgx-h100-x2", from_seconds(0.1), from_seconds(1.0), doubts);
  const CapacityPlan limited = plan_capacity(load_plan("a.yaml"), &evidence);
  ASSERT_TRUE(limited.answer);
  for (const CapacityRun& run : limited.kinds[0].runs) {
    EXPECT_EQ(run.mfu.value, 1.0) << run.gpus;
  }
  // Every what-if has the GPUs and the batch of the answer, so the same dense peak limits its step.
  const double least = limited.best_kind()->best()->step_s.value;
  for (const WhatIf& what_if : limited.what_ifs) {
    EXPECT_GE(what_if.step_s, (1.0 - 1e-9) * least) << what_if.change;
  }
}

TEST_F(CapacityTest, NoRunWithinLimitsBeatsTheAnswerInDaysAndCost) {
  // A run on four L40S needs more techniques to save memory than a run on eight, so it is slower and costs more.
  const CapacityPlan result = plan("deadline: 365 days",
                                   "  l40s: {hardware: l40s-pcie, price: 0.8, price_date: 2026-11-01, available: 8}\n"
                                   "  a100p: {hardware: azure-nc96ads-x2, price: 3, price_date: 2026-11-01, available: "
                                   "64}\n",
                                   "model: llama-3.1-8b, seq: 8K, batch: 64");
  ASSERT_TRUE(result.answer);
  const CapacityRun& answer = *result.best_kind()->best();
  for (const CapacityKind& kind : result.kinds) {
    for (const CapacityRun& run : kind.runs) {
      EXPECT_FALSE(run.misses.empty() && run.days.value <= answer.days.value && run.cost.value < answer.cost.value)
          << run.gpus << " " << run.kind;
    }
  }
}

TEST_F(CapacityTest, TiesInCostAreReportedAndBrokenByFewerDays) {
  const CapacityPlan result = plan("deadline: 30 days\n", h100,
                                   "model: llama-3.1-8b, seq: 4K, batch: 128, verdict: "
                                   "{difference: 20%}");
  ASSERT_FALSE(result.ties.empty());
  EXPECT_EQ(result.tie_rule, "fewer days");
  for (const RunPlace& tie : result.ties) {
    const CapacityRun& run = result.kinds[tie.kind].runs[tie.run];
    EXPECT_TRUE(run.misses.empty());
    const bool is_beaten = std::ranges::any_of(result.kinds[tie.kind].runs, [&](const CapacityRun& other) {
      return other.misses.empty() && other.days.value < run.days.value && other.cost.value < run.cost.value;
    });
    EXPECT_TRUE(is_beaten || 1.2 * run.days.value > result.best_kind()->best()->days.value) << run.gpus;
  }
}

TEST_F(CapacityTest, TheCheaperOfTwoEqualKindsIsTheAnswer) {
  const auto kinds = [](const std::string& dear) {
    return "  cloud: {hardware: dgx-h100-x2, price: 10, price_date: 2026-05-04, count: 64" + dear +
           "}\n"
           "  owned: {hardware: dgx-h100-x2, price: 1, price_date: 2026-05-04, count: 64}\n";
  };
  const CapacityPlan equal = plan("", kinds(""));
  EXPECT_EQ(equal.best_kind()->name, "owned");
  EXPECT_EQ(equal.tie_rule, "lower cost");
  ASSERT_EQ(equal.ties.size(), 1U);
  EXPECT_EQ(plan("", kinds(", network_bandwidth: x1.02")).best_kind()->name, "owned");
}

TEST_F(CapacityTest, AnUnsureTieGoesToTheKindThatCostsMuchLess) {
  // The errors of two machines are independent, so the days tie although they differ by more than 2%.
  const CapacityPlan result = plan("",
                                   "  a100: {hardware: dgx-a100-x2, price: 1.3, price_date: 2026-05-04, count: 2048}\n"
                                   "  b200: {hardware: gke-a4-x2, price: 4.5, price_date: 2026-05-04, count: 320}\n",
                                   "model: llama-3.1-70b, seq: 8K, batch: 1K");
  EXPECT_EQ(result.best_kind()->name, "b200");
  ASSERT_EQ(result.ties.size(), 1U);
  EXPECT_EQ(result.tie_rule, "lower cost");
  EXPECT_GT(result.kinds[1].best()->days.value, 1.02 * result.kinds[0].best()->days.value);
}

TEST_F(CapacityTest, FailuresThatLeaveNoTimeToTrainAreReported) {
  const std::string why = reason("deadline: 30 days\nfailures: {per_gpu_hour: 1, restart: 5 h}");
  EXPECT_NE(why.find("failures bind: "), std::string::npos) << why;
  EXPECT_NE(why.find("training makes almost no progress; correct failures.per_gpu_hour"), std::string::npos) << why;
}

TEST_F(CapacityTest, MoreConfidenceTakesNoFewerGpus) {
  const std::int64_t gpus_by_default = plan("deadline: 3 days").best_kind()->best()->gpus;
  const CapacityPlan confident = plan("deadline: 3 days\nconfidence: 0.95");
  EXPECT_GE(confident.best_kind()->best()->gpus, gpus_by_default);
  EXPECT_GE(confident.best_kind()->best()->confidence, 0.95);
}

TEST_F(CapacityTest, TheConfidenceIsThatOfMeetingBothLimits) {
  const std::string gpus =
      "  h100: {hardware: dgx-h100-x2, price: 2, price_date: 2026-05-04, count: 64, price_error: 0.3}\n";
  const CapacityRun run = *plan("", gpus).best_kind()->best();
  // The ends of an interval lie 1.645 standard errors from its value. Each limit lies one standard error above the
  // value, so 84% of the draws stay within it. Cost also depends on the price, so fewer than 80% stay within both.
  const auto one_error_above = [](const Interval& interval) {
    return interval.value * std::pow(interval.high / interval.value, 1.0 / 1.645);
  };
  const std::string deadline = "deadline: " + std::to_string(one_error_above(run.days)) + " days\nconfidence: 0.8";
  const std::string budget = "\nbudget: " + std::to_string(one_error_above(run.cost));
  EXPECT_TRUE(plan(deadline, gpus).answer);
  EXPECT_TRUE(plan("confidence: 0.8" + budget, gpus).answer);
  const CapacityPlan both = plan(deadline + budget, gpus);
  EXPECT_FALSE(both.answer);
  EXPECT_LT(both.kinds[0].runs[0].confidence, 0.8);
  EXPECT_TRUE(both.kinds[0].reason.starts_with("confidence binds: the chance that the likeliest run, on 64 GPUs, "))
      << both.kinds[0].reason;
}

TEST_F(CapacityTest, ABudgetAloneBuysTheShortestRun) {
  const CapacityPlan result = plan("budget: 1e9");
  const CapacityKind& kind = *result.best_kind();
  for (const CapacityRun& run : kind.runs) {
    EXPECT_GE(run.days.value, kind.best()->days.value);
  }
}

TEST_F(CapacityTest, TheCheapestKindIsChosenAndCostsMeetAtBreakEven) {
  const CapacityPlan result =
      plan("deadline: 4 days",
           "  dear: {hardware: dgx-h100-x2, price: 3, price_date: 2026-05-04, available: 256}\n"
           "  cheap: {hardware: dgx-h100-x2, price: 2, price_date: 2026-05-04, available: 256}\n");
  EXPECT_EQ(result.best_kind()->name, "cheap");
  EXPECT_NEAR(*result.kinds[0].break_even_price, 2.0, 1e-9);  // Equal GPUs break even at equal prices.
  EXPECT_NEAR(*result.kinds[1].break_even_price, 3.0, 1e-9);
}

TEST_F(CapacityTest, NoPriceBreaksEvenIfEnergyAloneCostsMore) {
  const CapacityPlan result =
      plan("deadline: 4 days\nenergy: {price: 0.1, pue: 1}",
           "  hot: {hardware: dgx-h100-x2, price: 2, price_date: 2026-05-04, available: 256, power: 1000 kW}\n"
           "  cool: {hardware: dgx-h100-x2, price: 2, price_date: 2026-05-04, available: 256, power: 1 kW}\n");
  EXPECT_EQ(result.best_kind()->name, "cool");
  EXPECT_EQ(result.kinds[0].break_even_price, std::nullopt);  // The power of a hot GPU costs $100 per hour.
  EXPECT_GT(*result.kinds[1].break_even_price, 100.0);
}

TEST_F(CapacityTest, TwoPricesOfOneMachineTieOnlyWithinTheDifferenceOfTheRule) {
  // The errors of the machine are the same at both prices, so a cost that is 10% higher is clearly higher, although
  // each cost has an error of 13%.
  const auto ties_at = [&](const std::string& price, const std::string& price_error) {
    return plan("deadline: 4 days",
                "  cheap: {hardware: dgx-h100-x2, price: 2, price_date: 2026-05-04, available: 64}\n"
                "  dear: {hardware: dgx-h100-x2, price: " +
                    price + ", price_date: 2026-05-04, available: 64, price_error: " + price_error + "}\n")
        .ties;
  };
  const auto is_dear = [](const RunPlace& tie) { return tie.kind == 1; };
  EXPECT_TRUE(std::ranges::any_of(ties_at("2.02", "0"), is_dear));
  EXPECT_TRUE(std::ranges::none_of(ties_at("2.2", "0"), is_dear));
  EXPECT_TRUE(std::ranges::any_of(ties_at("2.2", "0.2"), is_dear));  // ln(2.2 / 2) is half of the error: 68% sure.
}

TEST_F(CapacityTest, TheGpusThatMeetADeadlineDoNotDependOnTheAvailableOnes) {
  const auto with_available = [&](const std::string& available) {
    return plan("deadline: 2 days",
                "  h100: {hardware: dgx-h100-x2, price: 2, price_date: 2026-05-04, available: " + available + "}\n")
        .kinds.at(0);
  };
  const CapacityKind ample = with_available("256");
  EXPECT_FALSE(ample.gpus_for_deadline);  // A planned number meets the deadline.
  const auto first = std::ranges::find_if(ample.runs, [](const CapacityRun& run) { return run.days.value <= 2.0; });
  ASSERT_NE(first, ample.runs.end());
  for (const char* few : {"16", "24", "40"}) {
    EXPECT_EQ(with_available(few).gpus_for_deadline, first->gpus) << few;
  }
  EXPECT_FALSE(with_available("1").gpus_for_deadline);  // More than eight times the available GPUs are not tried.
}

TEST_F(CapacityTest, AnExactCountHasOneRunWithItsBestLayout) {
  const auto exactly = [](const std::string& count) {
    return "  h100: {hardware: dgx-h100-x2, price: 2, price_date: 2026-05-04, available: 256, power: 1 kW, count: " +
           count + "}\n";
  };
  const CapacityPlan chosen = plan("deadline: 30 days");
  const CapacityPlan exact = plan("deadline: 30 days", exactly("64"));
  ASSERT_EQ(exact.kinds[0].runs.size(), 1U);
  EXPECT_EQ(exact.kinds[0].count, 64);
  EXPECT_EQ(exact.kinds[0].available, 256);
  EXPECT_EQ(exact.best_kind()->best()->gpus, 64);
  const auto same = std::ranges::find(chosen.kinds[0].runs, 64, &CapacityRun::gpus);
  ASSERT_NE(same, chosen.kinds[0].runs.end());
  EXPECT_EQ(exact.best_kind()->best()->step_s.value, same->step_s.value);
  const CapacityPlan unlimited = plan("", exactly("64"));
  EXPECT_EQ(unlimited.best_kind()->best()->gpus, 64);
  EXPECT_EQ(unlimited.best_kind()->best()->confidence, 1.0);
  EXPECT_NE(reason("deadline: 1 h", exactly("64")).find(" days on 64 GPUs (gpus.h100.count), "), std::string::npos);
  EXPECT_EQ(reason("deadline: 30 days\nlimits: {power: 32 kW}", exactly("64")),
            "limits.power binds: the 64 GPUs of gpus.h100.count need 0.064 MW, and the limit is 0.032 MW");
  const std::string full = reason("", exactly("8"), "model: llama-3.1-405b, seq: 4K, batch: 8");
  EXPECT_TRUE(full.starts_with("memory binds: the smallest layout on the 8 GPUs of gpus.h100.count needs ")) << full;
  EXPECT_NE(full.find("; choose "), std::string::npos) << full;
  EXPECT_TRUE(full.ends_with(", or free degrees that are fixed")) << full;
  const std::string lone = reason("", exactly("1"), "model: llama-3.1-405b, seq: 4K, batch: 8");
  EXPECT_TRUE(lone.starts_with("memory binds: the smallest layout on the 1 GPU of gpus.h100.count needs ")) << lone;
  EXPECT_THROW(plan("", exactly("100")), ConfigError);
}

TEST_F(CapacityTest, ACountBeyondTheUsefulSizeNamesASmallerOne) {
  const auto exactly = [](const std::string& count) {
    return plan("", "  h100: {hardware: dgx-h100-x2, price: 2, price_date: 2026-05-04, count: " + count + "}\n",
                "model: llama-3.1-8b, seq: 8K, batch: 32")
        .kinds.at(0);
  };
  EXPECT_FALSE(exactly("16").smaller);
  const CapacityKind large = exactly("32768");  // 1024 GPUs for each sequence
  ASSERT_TRUE(large.smaller);
  EXPECT_LT(large.smaller->gpus, 32768);
  EXPECT_LE(large.smaller->days, large.best()->days.value);
  EXPECT_LT(large.smaller->cost, large.best()->cost.value);
  const CapacityKind smaller = exactly(std::to_string(large.smaller->gpus));
  EXPECT_NEAR(smaller.best()->days.value, large.smaller->days, 1e-9 * large.smaller->days);
  EXPECT_FALSE(smaller.smaller);
}

TEST_F(CapacityTest, AnImpossibleCountNamesTheNearestThatFit) {
  const auto message = [](const std::string& count, const std::string& set) {
    return test::message_of([&] {
      (void)plan("", "  h100: {hardware: dgx-h100-x2, price: 2, price_date: 2026-05-04, count: " + count + "}\n", set);
    });
  };
  // 32 layers split over 1, 2, 4, 8, 16, 32, 17 and 34 stages, so the counts are 2^n and 17 x 2^n.
  const std::string small = message("104", "model: llama-3.1-8b, seq: 4K, batch: 128");
  EXPECT_TRUE(
      small.ends_with(": 'gpus.h100.count' is 104, but no layout of llama-3.1-8b with batch 128 divides 104 GPUs "
                      "of dgx-h100-x2 evenly; choose 64 or 128, or a batch that more degrees divide"))
      << small;
  // Weights, gradients and moments of 70B take 18 bytes x 70.6B = 1.27 TB, more than 16 times 72 GB.
  const std::string few = message("24", "model: llama-3.1-70b, seq: 4K, batch: 128");
  EXPECT_TRUE(few.ends_with("; choose 32, or a batch that more degrees divide")) << few;
  // A count that some layout divides, but none with the fixed degrees, gives a result with the same advice.
  EXPECT_EQ(
      reason("", "  h100: {hardware: dgx-h100-x2, price: 2, price_date: 2026-05-04, count: 24}\n",
             "model: llama-3.1-8b, seq: 4K, batch: 128, parallel: {context: 3}"),
      "no layout of llama-3.1-8b with batch 128 exists on the 24 GPUs of gpus.h100.count; no layout on up to 8192 "
      "GPUs has the fixed degrees and fits in memory, so free degrees, or choose a batch that more degrees divide");
  // Three tensor ranks divide none of the numbers of heads, on any number of GPUs.
  const std::string fixed = "model: llama-3.1-8b, seq: 4K, batch: 128, ranks: 3";
  const std::string heads =
      "the number of heads 32 is not a multiple of tensor parallelism 3; choose tensor ranks that divide it";
  EXPECT_EQ(message("24", fixed), heads);
  EXPECT_EQ(message("1024", fixed), heads);
}

TEST_F(CapacityTest, EveryAlternativeStatesItsChange) {
  const CapacityPlan result = plan("deadline: 3 days");
  const CapacityRun& answer = *result.best_kind()->best();
  ASSERT_FALSE(result.what_ifs.empty());
  for (const WhatIf& what_if : result.what_ifs) {
    EXPECT_DOUBLE_EQ(what_if.days_share, what_if.days.value / answer.days.value - 1.0) << what_if.change;
    EXPECT_DOUBLE_EQ(what_if.cost_share, what_if.cost.value / answer.cost.value - 1.0) << what_if.change;
    EXPECT_EQ(what_if.layout.gpus(), answer.gpus) << what_if.change;
    EXPECT_LT(what_if.days.low, what_if.days.value) << what_if.change;
    EXPECT_GT(what_if.cost.high, what_if.cost.value) << what_if.change;
  }
  const auto named = [&](const std::string& name) {
    return *std::find_if(result.what_ifs.begin(), result.what_ifs.end(),
                         [&](const WhatIf& what_if) { return what_if.change == name; });
  };
  EXPECT_GE(named("serial collectives").days_share, -1e-9);
  EXPECT_GT(named("one node x1.2 slower").days_share, 0.1);
  EXPECT_LE(named("network x4").days.value, named("network x0.5").days.value);
  EXPECT_NEAR(named("price -20 %").cost_share, -0.2, 1e-12);
  const WhatIf faster = named("network x4");
  EXPECT_DOUBLE_EQ(*faster.break_even_gpu, (answer.cost.value - faster.cost.value) / static_cast<double>(answer.gpus));
}

TEST_F(CapacityTest, AChangeOfThePriceIsStatedWithItsFraction) {
  const CapacityPlan result = plan("deadline: 3 days\nwhat_if: {change: 0.025}");
  const auto has = [&](const std::string& name) {
    return std::ranges::find(result.what_ifs, name, &WhatIf::change) != result.what_ifs.end();
  };
  EXPECT_TRUE(has("price -2.5 %"));
  EXPECT_TRUE(has("price +2.5 %"));
}

TEST_F(CapacityTest, AChangeIsMeasuredFromTheFastestLayout) {
  // The answer's layout is chosen for less memory and is no more than 2% slower than the fastest. Links whose rate
  // hardly matters to any layout must not appear to pay because of this difference.
  const CapacityPlan result = plan("deadline: 365 days",
                                   "  h100: {hardware: dgx-h100-x2, price: 2, price_date: 2026-05-04, available: 64, "
                                   "count: 64}\n",
                                   "model: phi-3-medium, seq: 2K, batch: 1024");
  const CapacityRun& answer = *result.best_kind()->best();
  EXPECT_GT(answer.excess_over_fastest, 0.0);
  EXPECT_FALSE(answer.layout_rule.empty());
  for (const WhatIf& what_if : result.what_ifs) {
    const bool is_worse = what_if.change == "serial collectives" || what_if.change.ends_with(" x0.5");
    EXPECT_TRUE(!is_worse || what_if.days_share >= -1e-9) << what_if.change << " " << what_if.days_share;
    const bool is_better = what_if.change.ends_with(" x2") || what_if.change.ends_with(" x4");
    EXPECT_TRUE(!is_better || what_if.days_share <= 1e-9) << what_if.change << " " << what_if.days_share;
  }
  for (const RateCurve& curve : result.curves) {
    for (std::size_t i = 1; i < curve.points.size(); ++i) {
      EXPECT_GE(curve.points[i].tokens_per_second, 0.9999 * curve.points[i - 1].tokens_per_second);
    }
  }
}

TEST_F(CapacityTest, StepsUseTheNamedFramework) {
  const std::string steps = "model: llama-3.1-8b, seq: 4K, batch: 128, ranks: 8";
  const CapacityPlan ideal = plan("deadline: 30 days", h100, steps);
  EXPECT_EQ(ideal.framework, "");
  const CapacityPlan real = plan("deadline: 30 days", h100, steps + ", framework: torchtitan");
  EXPECT_EQ(real.framework, "torchtitan");
  ASSERT_EQ(real.kinds[0].runs.size(), ideal.kinds[0].runs.size());
  for (std::size_t i = 0; i < real.kinds[0].runs.size(); ++i) {
    EXPECT_GT(real.kinds[0].runs[i].days.value, ideal.kinds[0].runs[i].days.value);
  }
  const auto commfuse = std::ranges::find(real.what_ifs, "CommFuse at every site", &WhatIf::change);
  ASSERT_NE(commfuse, real.what_ifs.end());
  EXPECT_LT(commfuse->days_share, 0.0);
}

TEST_F(CapacityTest, ErrorsAreThoseOfTheSchedulesOfTheFramework) {
  // Mindspeed slices every site, although other schedules are faster there.
  const Machine machine = load_machine("h100-sxm");
  StructureCache structures;
  LayoutTerms terms{.framework = load_framework("mindspeed")};
  terms.base.global_batch = 8;
  terms.base.seq = 8192;
  terms.wish.tensor = 8;
  LayoutSearch search(test::small_transformer, machine, structures, terms);
  const std::optional<FoundLayout> layout = search.preferred(8);
  ASSERT_TRUE(layout);
  const StepPoint point = search.point_of(layout->plan);
  const std::vector<TunedSite> sites = tune_sites(point, search.times(), structures);
  EXPECT_TRUE(std::ranges::any_of(sites, [](const TunedSite& site) { return site.best.strategy != &sliced_strategy; }));
  std::vector<CapacityDoubt> doubts = step_doubts(search, *layout, sites, structures);
  std::erase_if(doubts, [](const CapacityDoubt& doubt) { return doubt.parameter.starts_with("framework."); });
  const RaisedSteps raised(machine, structures);
  const Uncertainty uncertainty = step_uncertainty(point, search.times(), StepTime{&step_time}, raised.steps());
  const std::vector<CapacityDoubt> expected = doubts_of(uncertainty, machine);
  ASSERT_EQ(doubts.size(), expected.size());
  for (std::size_t i = 0; i < doubts.size(); ++i) {
    EXPECT_EQ(doubts[i].parameter, expected[i].parameter);
    EXPECT_EQ(doubts[i].effect, expected[i].effect) << doubts[i].parameter;
  }
}

TEST_F(CapacityTest, TokensThatAStrategyCannotSplitHaveAnAnswer) {
  // 3000 tokens divide into 8 shards, but sliced cannot halve a shard of 375.
  const auto with_framework = [](const std::string& framework) {
    return plan("", "  h100: {hardware: dgx-h100-x2, price: 2, price_date: 2026-05-04, count: 16}\n",
                "model: llama-3.1-8b, seq: 3000, batch: 128" + framework);
  };
  const CapacityPlan ideal = with_framework("");
  ASSERT_TRUE(ideal.answer) << ideal.kinds[0].reason;
  EXPECT_NE(std::ranges::find(ideal.what_ifs, "serial collectives", &WhatIf::change), ideal.what_ifs.end());
  const CapacityPlan sliced = with_framework(", framework: mindspeed");  // It has only sliced.
  EXPECT_TRUE(sliced.answer) << sliced.kinds[0].reason;
  const std::string alone = reason("", "  h100: {hardware: h100-sxm, price: 2, price_date: 2026-05-04, count: 8}\n",
                                   "model: llama-3.1-8b, seq: 3000, batch: 1, ranks: 8, framework: mindspeed");
  EXPECT_TRUE(alone.starts_with("3000 tokens cannot be cut into 16 equal blocks, as sliced (k=2) qkv requires"))
      << alone;
}

TEST_F(CapacityTest, TheSensitivitiesBracketTheAnswer) {
  const CapacityPlan result = plan("deadline: 3 days");
  const double cost = result.best_kind()->best()->cost.value;
  for (const Sensitivity& sensitivity : result.sensitivities) {
    EXPECT_LE(std::min(sensitivity.cost_low, sensitivity.cost_high), cost * (1 + 1e-9)) << sensitivity.input;
    EXPECT_GE(std::max(sensitivity.cost_low, sensitivity.cost_high), cost * (1 - 1e-9)) << sensitivity.input;
  }
}

TEST_F(CapacityTest, LatencyAndSpreadOfGpusLengthenTheRun) {
  const CapacityPlan result = plan("deadline: 30 days", h100, "model: llama-3.1-8b, seq: 4K, batch: 128, ranks: 8");
  for (const char* name : {"latency of all links", "spread of the GPUs"}) {
    const auto sensitivity = std::ranges::find(result.sensitivities, name, &Sensitivity::input);
    ASSERT_NE(sensitivity, result.sensitivities.end()) << name;
    EXPECT_LT(sensitivity->days_low, sensitivity->days_high) << name;
  }
}

TEST_F(CapacityTest, AStepIsNoShorterThanWithEqualGpus) {
  const CapacityPlan result = plan("deadline: 3 days");
  const CapacityRun& answer = *result.best_kind()->best();
  EXPECT_LT(answer.step_equal_gpus_s, answer.step_p50_s);
  EXPECT_LT(answer.step_p99_s, answer.step_p99_9_s);
  ASSERT_FALSE(result.best_kind()->inputs.empty());
  EXPECT_EQ(result.best_kind()->inputs.front().what, "dense peak, bf16");
  EXPECT_FALSE(result.best_kind()->inputs.front().source.empty());
}

TEST_F(CapacityTest, TheParetoFrontHasNoRunThatAnotherBeats) {
  const CapacityPlan result = plan("deadline: 3 days");
  ASSERT_FALSE(result.pareto.empty());
  for (std::size_t i = 1; i < result.pareto.size(); ++i) {
    const auto run = [&](std::size_t at) { return result.kinds[result.pareto[at].kind].runs[result.pareto[at].run]; };
    EXPECT_GT(run(i).days.value, run(i - 1).days.value);
    EXPECT_LT(run(i).cost.value, run(i - 1).cost.value);
  }
}

TEST_F(CapacityTest, NamesTheBindingLimitAndItsDistance) {
  const std::string late = reason("deadline: 1 h");
  EXPECT_TRUE(late.starts_with("the deadline binds: the shortest run takes ")) << late;
  EXPECT_NE(late.find(" days on 256 GPUs (all that are available), "), std::string::npos) << late;
  EXPECT_TRUE(late.ends_with(" times the allowed 0.04167 days")) << late;
  const std::string power_limited = reason("deadline: 1 h\nlimits: {power: 64 kW}");
  EXPECT_NE(power_limited.find(" days on 64 GPUs (all that limits.power of 0.064 MW allows), "), std::string::npos)
      << power_limited;
  const std::string poor = reason("deadline: 1000 days\nbudget: 9.5");
  EXPECT_TRUE(poor.starts_with("the budget binds: the cheapest run costs $")) << poor;
  EXPECT_TRUE(poor.ends_with(" times the allowed $9.50")) << poor;
  // The shortest run is in time and the cheapest run is within the budget, but no run meets both limits.
  const std::string both_limits = reason("deadline: 24 h\nbudget: 5100");
  EXPECT_TRUE(both_limits.starts_with("the budget binds: the cheapest run that meets the other limits costs $"))
      << both_limits;
  EXPECT_NE(both_limits.find("; the cheapest of all, $"), std::string::npos) << both_limits;
  EXPECT_NE(both_limits.find(" misses the deadline: it takes 6."), std::string::npos) << both_limits;
  EXPECT_TRUE(reason("deadline: 1000 days\nlimits: {p99_step: 1 ms}").starts_with("limits.p99_step binds: "));
  EXPECT_TRUE(reason("deadline: 1000 days\nlimits: {power: 500 W}")
                  .starts_with("limits.power binds: one GPU needs 1 kW, and the limit is 0.5 kW"));
  EXPECT_TRUE(reason("deadline: 1000 days",
                     "  h100: {hardware: h100-sxm, price: 2, price_date: 2026-05-04, available: 8}\n",
                     "model: llama-3.1-405b, seq: 4K, batch: 8")
                  .starts_with("memory binds: the smallest layout on up to 8 GPUs needs "));
  EXPECT_TRUE(reason("deadline: 1000 days", h100, "model: llama-3.1-8b, batch: 8, seq: 4K, parallel: {data: 16}")
                  .starts_with("no layout of llama-3.1-8b with batch 8 "));
}

TEST_F(CapacityTest, ABindingLimitOfASingleDayOrSequenceIsSingular) {
  const std::string late = reason("deadline: 1 day", h100, "model: llama-3.1-70b, seq: 4K, batch: 128");
  EXPECT_TRUE(late.starts_with("the deadline binds: ")) << late;
  EXPECT_TRUE(late.ends_with(" times the allowed 1 day")) << late;
  const std::string slow =
      reason("deadline: 3 days", "  cpu: {hardware: cpu, price: 1, price_date: 2026-05-04, available: 1}\n",
             "model: llama-3.1-405b, seq: 128K, batch: 1");
  EXPECT_EQ(slow, "cpu is too slow: a step of 1 sequence takes more than a million seconds at its dense peak");
}

TEST_F(CapacityTest, AChanceBelowTheRequiredOneIsNotRoundedUpToIt) {
  PlanFile file;
  file.confidence = 0.9;
  CapacityKind kind{.runs = {{.gpus = 64, .confidence = 0.8996}}};
  kind.runs[0].goodput.value = 1.0;
  const Transformer model = load_model("llama-3.1-8b");
  const Machine machine = load_machine("dgx-h100-x2");
  StructureCache structures;
  const LayoutSearch search(model, machine, structures, {});
  EXPECT_EQ(binding_limit(file, kind, search, 64, ""),
            "confidence binds: the chance that the likeliest run, on 64 GPUs, meets the limits is 89%, and 90% is "
            "required");
  file.confidence = 0.825;
  kind.runs[0].confidence = 0.7;
  EXPECT_EQ(binding_limit(file, kind, search, 64, ""),
            "confidence binds: the chance that the likeliest run, on 64 GPUs, meets the limits is 70%, and 82.5% is "
            "required");
}

TEST_F(CapacityTest, AnImpossibleKindIsReportedAndOtherKindsAnswer) {
  const std::string a100 = "  a100: {hardware: dgx-a100-x2, price: 1, price_date: 2026-05-04, available: 256}\n";
  const CapacityPlan result =
      plan("deadline: 3 days", a100 + h100, "model: llama-3.1-8b, seq: 4K, batch: 128, dtype: fp8");
  EXPECT_NE(result.kinds[0].reason.find("fp8"), std::string::npos) << result.kinds[0].reason;
  EXPECT_EQ(result.best_kind()->name, "h100");
  EXPECT_TRUE(reason("deadline: 3 days", "  cpu: {hardware: cpu, price: 1, price_date: 2026-05-04, available: 1}\n",
                     "model: llama-3.1-405b, seq: 4K, batch: 1K")
                  .starts_with("cpu is too slow: a step of 1024 sequences takes more than a million seconds"));
}

TEST_F(CapacityTest, ASingleNodeUsesOnlyItsOwnGpus) {
  try {
    plan("deadline: 3 days", "  h100: {hardware: h100-sxm, price: 2, price_date: 2026-05-04, available: 64}\n");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "'gpus.h100.available' is 64, but h100-sxm is one node of 8; choose a cluster as 'hardware', such as "
                 "dgx-h100-x2, or fewer GPUs");
  }
}

}  // namespace
}  // namespace commfuse
