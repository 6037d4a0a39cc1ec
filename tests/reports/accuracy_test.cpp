// SPDX-License-Identifier: Apache-2.0
#include "reports/accuracy.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace commfuse::reports {
namespace {

TEST(AccuracyPage, AGoalWithoutRowsIsNotMet) {
  std::array<TableScore, 2> tables{TableScore{.table = "mcore_h100_weak_scaling.csv", .kind = "training_step"},
                                   TableScore{.table = "llama3_405b_table4.csv", .kind = "training_step"}};
  tables[1].mfu_distance = 0.0;
  const std::string none = accuracy_page(tables);
  EXPECT_NE(none.find("| GPT 1.7B to 462B, 48 to 6144 H100: median | 10.0 | 0 | - | no rows |\n"), std::string::npos);
  EXPECT_NE(none.find("largest error of MFU, in points | 3.0 | 0 | - | no rows |\n"), std::string::npos);
  tables[0].held_out = {0.04, 0.05, 0.2};
  tables[1].scored = 3;
  tables[1].mfu_distance = 0.04;
  const std::string page_with_rows = accuracy_page(tables);
  EXPECT_NE(page_with_rows.find("| GPT 1.7B to 462B, 48 to 6144 H100: median | 10.0 | 3 | 5.0 | yes |\n"),
            std::string::npos);
  EXPECT_NE(page_with_rows.find("largest error of MFU, in points | 3.0 | 3 | 4.0 | no |\n"), std::string::npos);
}

TEST(AccuracyPage, RatiosOfDegradedMachinesAreExcluded) {
  std::array<TableScore, 2> tables{TableScore{.table = "healthy.csv", .kind = "overlap_pairs"},
                                   TableScore{.table = "degraded.csv", .kind = "overlap_pairs", .degraded = true}};
  tables[0].variants = VariantScore{.ratio_errors = {0.05}};
  tables[1].variants = VariantScore{.ratio_errors = {0.5}};
  EXPECT_NE(accuracy_page(tables).find(
                "| overlap tables: ratio of overlapped to serial | 6.0 | 1 | 5.0 | 5.0 | 1 | 5.0 | 5.0 | yes |\n"),
            std::string::npos);
}

TEST(AccuracyPage, ListsMalformedRowsWithTheirPlaces) {
  std::array<TableScore, 1> tables{TableScore{.table = "mine.csv", .kind = "overlap_pairs"}};
  EXPECT_EQ(accuracy_page(tables).find("Malformed rows"), std::string::npos);
  tables[0].faults = {{.line = 7, .reason = "ms is 'a|b'"}};
  tables[0].fault_count = 3;
  EXPECT_NE(accuracy_page(tables).find("## Malformed rows\n\n| table | place | reason |\n|---|---|---|\n"
                                       "| `mine.csv` | line 7 | ms is 'a\\|b' |\n| `mine.csv` | 2 more rows | |\n"),
            std::string::npos)
      << accuracy_page(tables);
}

}  // namespace
}  // namespace commfuse::reports
