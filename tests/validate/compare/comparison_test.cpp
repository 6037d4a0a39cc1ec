// SPDX-License-Identifier: Apache-2.0
// Compares predicted with measured times, in sums that can be done by hand.
#include "validate/compare/comparison.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

namespace commfuse::validate {
namespace {

using namespace std::chrono_literals;

ComparedSchedule schedule(std::string strategy, Duration predicted, Duration measured) {
  ComparedSchedule compared{.strategy = std::move(strategy), .schedule_sha256 = "ab", .predicted = predicted};
  compared.measured = Summary{.samples = 9,
                              .median = {measured, TimeRange{measured - 1us, measured + 1us}},
                              .p10 = measured - 2us,
                              .p90 = measured + 2us};
  compared.makespans = std::vector<Duration>(9, measured);
  return compared;
}

TEST(Agreement, CountsErrorsPairsAndTheWinner) {
  const std::array schedules{schedule("serial", 2000us, 2100us), schedule("sliced", 1500us, 1530us),
                             schedule("commfuse", 1000us, 1010us), schedule("async_tp", 1020us, 1000us)};
  const Agreement agreement = *agreement_of(schedules);
  EXPECT_EQ(agreement.compared, 4U);
  EXPECT_NEAR(agreement.median_error, (0.02 + 1.0 - 1000.0 / 1020.0) / 2.0, 1e-12);  // median of 5, 2, 1.96 and 1%
  EXPECT_NEAR(agreement.worst_error, 0.05, 1e-12);
  EXPECT_EQ(agreement.worst, 0U);
  EXPECT_EQ(agreement.predicted_winner, 2U);
  EXPECT_EQ(agreement.measured_winner, 3U);
  EXPECT_NEAR(agreement.predicted_gap, 0.02, 1e-12);
  EXPECT_EQ(agreement.pairs, 5U);  // all except the pair whose predicted times are 2% apart
  EXPECT_EQ(agreement.in_order, 5U);
}

TEST(Agreement, APairInTheWrongOrderDoesNotCountAsInOrder) {
  const std::array schedules{schedule("serial", 2000us, 900us), schedule("commfuse", 1000us, 1000us)};
  const Agreement agreement = *agreement_of(schedules);
  EXPECT_EQ(agreement.pairs, 1U);
  EXPECT_EQ(agreement.in_order, 0U);
  EXPECT_EQ(verdict_in_words(schedules, agreement),
            "commfuse was predicted to win by 100.0%, but serial won, 11.1% ahead of the predicted winner (95% "
            "interval 11.1 to 11.1). Measured and predicted differ by 27.5% in the median, at most by 55.0% (serial). "
            "Of 1 pair predicted more than 5% apart, 0 came in that order.");
}

TEST(Agreement, AnUncertainLeadIsTooCloseToCall) {
  std::array schedules{schedule("serial", 1010us, 1001us), schedule("commfuse", 1000us, 1000us)};
  schedules[0].makespans = {1001us, 1001us, 1001us, 999us, 998us, 1002us, 1002us};
  schedules[1].makespans = std::vector<Duration>(7, 1000us);
  const Agreement agreement = *agreement_of(schedules);
  EXPECT_NEAR(agreement.lead->value, 1.001, 1e-12);
  EXPECT_LE(agreement.lead->low, 1.0);
  EXPECT_NE(verdict_in_words(schedules, agreement)
                .find("and won, 0.1% ahead of the next (95% interval -0.1 to 0.2), "
                      "too close to call."),
            std::string::npos)
      << verdict_in_words(schedules, agreement);
}

TEST(Agreement, OneScheduleHasNoRival) {
  const std::array schedules{schedule("commfuse", 1000us, 1010us)};
  EXPECT_EQ(
      verdict_in_words(schedules, *agreement_of(schedules)),
      "Only commfuse was measured. Measured and predicted differ by 1.0% in the median, at most by 1.0% (commfuse).");
}

TEST(Agreement, AnEmulatedRunStatesItsMeaning) {
  const std::array schedules{schedule("commfuse", 1000us, 1010us)};
  const std::string verdict = verdict_in_words(schedules, *agreement_of(schedules), Evidence::emulated);
  EXPECT_TRUE(
      verdict.ends_with(" This run is emulated: every op slept for its predicted duration. It shows that the order of "
                        "ops, their waits and the evaluator agree; it does not show that the predicted durations are "
                        "right."))
      << verdict;
  EXPECT_NE(to_table(schedules, Evidence::emulated).find("This run is emulated"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(to_json(schedules, Evidence::emulated)).at(0).at("emulated").get<bool>());
  EXPECT_FALSE(nlohmann::json::parse(to_json(schedules)).at(0).at("emulated").get<bool>());
  EXPECT_EQ(to_table(schedules).find("emulated"), std::string::npos);
}

TEST(Agreement, AnEmulatedRunThatDiffersConfirmsNothing) {
  const std::array schedules{schedule("serial", 2000us, 2020us), schedule("commfuse", 1000us, 1060us)};
  EXPECT_EQ(verdict_in_words(schedules, *agreement_of(schedules), Evidence::emulated),
            "commfuse was predicted to win by 100.0%, and won, 90.6% ahead of the next (95% interval 90.6 to 90.6). "
            "Measured and predicted differ by 3.5% in the median, at most by 6.0% (commfuse). Of 1 pair predicted more "
            "than 5% apart, 1 came in that order. This run is emulated: every op slept for its predicted duration. It "
            "does not confirm the prediction, because the two differ by more than 5%; usually other programs delay its "
            "threads. End them, or raise --dilation, and measure again; commfuse-validate doctor shows how late "
            "threads wake up.");
  const std::array nearer{schedule("commfuse", 1000us, 1049us)};
  EXPECT_NE(verdict_in_words(nearer, *agreement_of(nearer), Evidence::emulated)
                .find("It shows that the order of ops, their waits and the evaluator agree"),
            std::string::npos);
}

TEST(Agreement, IsAbsentWithoutMeasurements) {
  ComparedSchedule failed = schedule("serial", 1ms, 1ms);
  failed.measured.reset();
  EXPECT_FALSE(agreement_of({&failed, 1}).has_value());
}

TEST(Comparison, IsATableByPrediction) {
  ComparedSchedule sliced = schedule("sliced", 1500us, 1530us);
  sliced.parameters = "k=4";
  ComparedSchedule failed = schedule("async_tp", 1600us, 1ms);
  failed.measured.reset();
  const std::array schedules{schedule("serial", 2000us, 2100us), sliced, failed, schedule("commfuse", 1000us, 1010us)};
  EXPECT_EQ(to_table(schedules),
            "milliseconds                  predicted  measured   ratio         95% interval\n"
            "commfuse                          1.000     1.010   1.010         1.009..1.011\n"
            "sliced (k=4)                      1.500     1.530   1.020         1.529..1.531\n"
            "async_tp                          1.600    failed       -                    -\n"
            "serial                            2.000     2.100   1.050         2.099..2.101\n"
            "commfuse was predicted to win by 50.0%, and won, 51.5% ahead of the next (95%\n"
            "interval 51.5 to 51.5). Measured and predicted differ by 2.0% in the median, at\n"
            "most by 5.0% (serial). Of 3 pairs predicted more than 5% apart, 3 came in that\n"
            "order.\n");
}

TEST(Comparison, ListsTheTimesOfOpsBelowASchedule) {
  ComparedSchedule compared = schedule("commfuse", 1000us, 1010us);
  compared.ops =
      ComparedOps{.kinds = {{.what = "gemm", .ops = 8, .predicted = 1600us, .measured = 2000us},
                            {.what = "exchange", .ops = 2, .predicted = Duration{}, .measured = 1us}},
                  .furthest = {.what = "op 3 (gemm on compute 0)", .ops = 2, .predicted = 400us, .measured = 600us}};
  EXPECT_EQ(to_table({&compared, 1}),
            "milliseconds                  predicted  measured   ratio         95% interval\n"
            "commfuse                          1.000     1.010   1.010         1.009..1.011\n"
            "  8 x gemm                        1.600     2.000   1.250\n"
            "  2 x exchange                    0.000     0.001       -\n"
            "  worst: op 3 (gemm on comp..     0.400     0.600   1.500\n"
            "Only commfuse was measured. Measured and predicted differ by 1.0% in the median,\n"
            "at most by 1.0% (commfuse).\n");
  const auto rows = nlohmann::json::parse(to_json({&compared, 1}));
  EXPECT_EQ(rows[0].at("ops").at("kinds")[0].at("measured_us"), 2000.0);
  EXPECT_EQ(rows[0].at("ops").at("furthest").at("what"), "op 3 (gemm on compute 0)");
}

TEST(Comparison, IsJsonForPrograms) {
  const std::array schedules{schedule("serial", 2000us, 2100us), schedule("commfuse", 1000us, 1010us)};
  const auto rows = nlohmann::json::parse(to_json(schedules));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].at("schema"), "commfuse.compare/1");
  EXPECT_EQ(rows[0].at("predicted_us"), 2000.0);
  EXPECT_EQ(rows[0].at("measured_us"), 2100.0);
  EXPECT_DOUBLE_EQ(rows[0].at("ratio"), 1.05);
  EXPECT_EQ(rows[0].at("samples"), 9);
  EXPECT_EQ(rows[0].at("measured_winner"), false);
  EXPECT_EQ(rows[1].at("predicted_winner"), true);
  EXPECT_EQ(rows[1].at("measured_winner"), true);
}

}  // namespace
}  // namespace commfuse::validate
