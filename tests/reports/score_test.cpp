// SPDX-License-Identifier: Apache-2.0
#include "reports/score.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reports/pays.h"

namespace commfuse::reports {
namespace {

TEST(ScoreReport, CountsTheFaultsBeyondTheListed) {
  TableScore score{.path = "a.csv", .faults = {{2, "m is missing"}}, .fault_count = 2};
  EXPECT_EQ(score_faults(std::vector{score}), "a.csv:2: m is missing\na.csv: and 1 more row like these\n");
  score.fault_count = 3;
  EXPECT_EQ(score_faults(std::vector{score}), "a.csv:2: m is missing\na.csv: and 2 more rows like these\n");
}

TEST(ScoreReport, FactorsHaveColumnsOfTheirOwn) {
  TableScore score{.table = "x.csv", .machines = {"h100-sxm"}};
  score.times = {{.line = 2, .part = "serial", .measured_us = 200.0, .predicted_us = 250.0},
                 {.line = 3, .part = "gain", .measured_us = 0.8, .predicted_us = 0.6, .is_factor = true}};
  EXPECT_EQ(score_rows_csv(std::vector{score}),
            "table,line,machine,part,measured_us,predicted_us,error,measured_factor,predicted_factor\n"
            "x.csv,2,h100-sxm,serial,200,250,0.2500,,\n"
            "x.csv,3,h100-sxm,gain,,,-0.2500,0.8,0.6\n");
}

TEST(ScoreReport, APairSaysIfItsCommandHasAnotherFit) {
  TableScore score{.table = "x.csv"};
  score.pairs = {{.line = 2, .implementation = "flux", .measured_us = 500.0, .predicted_us = 400.0, .command = "run"}};
  EXPECT_TRUE(pairs_table(std::vector{score}).ends_with("    run\n")) << pairs_table(std::vector{score});
  score.pairs[0].without = "bytedance/flux";
  EXPECT_TRUE(pairs_table(std::vector{score})
                  .ends_with("    run\n"
                             "    The command has a fit with the rows of bytedance/flux, the prediction one\n"
                             "    without.\n"))
      << pairs_table(std::vector{score});
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
