// SPDX-License-Identifier: Apache-2.0
#include "reports/score.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace commfuse::reports {
namespace {

TEST(ScoreReport, CountsTheFaultsBeyondTheListed) {
  TableScore score{.path = "a.csv", .faults = {{2, "m is missing"}}, .fault_count = 2};
  EXPECT_EQ(score_faults(std::vector{score}), "a.csv:2: m is missing\na.csv: and 1 more row like these\n");
  score.fault_count = 3;
  EXPECT_EQ(score_faults(std::vector{score}), "a.csv:2: m is missing\na.csv: and 2 more rows like these\n");
}

TEST(ScoreReport, PairsOfLayoutsFitEightyColumns) {
  TableScore score{.table = "steps.csv", .kind = "training_step", .scored = 1, .errors = {0.05}};
  score.steps = StepScore{.n = 1, .mean = 0.05, .rank_correlation = 1.0, .layout_pairs = 2297, .better_named = 2185};
  EXPECT_NE(score_table(std::vector{score})
                .find("    the better of two layouts whose times differ by more than 5% is predicted:\n"
                      "      2185 of 2297\n"),
            std::string::npos)
      << score_table(std::vector{score});
}

}  // namespace
}  // namespace commfuse::reports
