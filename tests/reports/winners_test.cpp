// SPDX-License-Identifier: Apache-2.0
#include "reports/html/winners.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/reports/trace_runs.h"

namespace commfuse::reports {
namespace {

using namespace std::chrono_literals;

ResultRow winner_row(const char* strategy, std::int64_t ranks, std::int64_t seq, Duration makespan) {
  ResultRow row = test::traced("serial", SiteKind::ag_gemm, 2).row;
  row.strategy = strategy;
  row.parameters = "";
  row.ranks = ranks;
  row.seq = seq;
  row.analysis.critical = {.makespan = makespan};
  return row;
}

/// Returns rows of two strategies; commfuse is faster with an even number of ranks.
std::vector<ResultRow> rows_up_to(std::int64_t ranks, std::int64_t seq = 1024) {
  std::vector<ResultRow> rows;
  for (std::int64_t i = 1; i <= ranks; ++i) {
    rows.push_back(winner_row("serial", i, seq, 1000us));
    rows.push_back(winner_row("commfuse", i, seq, i % 2 == 0 ? 500us : 2000us));
  }
  return rows;
}

std::string section_of(const std::vector<ResultRow>& rows) {
  const RowTable table(rows);
  return winners_section(table, overview_of(table));
}

TEST(WinnersSection, StatesWhatATableOmits) {
  EXPECT_EQ(section_of(rows_up_to(40)).find("class=\"note\""), std::string::npos) << "40 lines are complete";
  const std::string html = section_of(rows_up_to(42));  // 41 changes
  EXPECT_NE(html.find("<p class=\"note\">Only 40 lines are shown; map.csv has all.</p>"), std::string::npos) << html;
  EXPECT_NE(html.find("<p class=\"note\">Only 40 of 41 changes are shown; crossovers.csv has all.</p>"),
            std::string::npos)
      << html;
  std::vector<ResultRow> wide;
  for (std::int64_t seq = 1; seq <= 17; ++seq) {
    const std::vector<ResultRow> point = rows_up_to(1, 1024 * seq);
    wide.insert(wide.end(), point.begin(), point.end());
  }
  EXPECT_NE(section_of(wide).find("<p class=\"note\">Only 16 of 17 sequence lengths are shown; map.csv has all.</p>"),
            std::string::npos);
}

TEST(WinnersSection, AWinnerWithoutACompetitorSavesNothing) {
  std::vector<ResultRow> rows = rows_up_to(2);
  rows.push_back(winner_row("serial", 3, 1024, 1000us));
  const std::string html = section_of(rows);
  EXPECT_NE(html.find("<td title=\"the only strategy with a result\">serial</td>"), std::string::npos) << html;
  EXPECT_EQ(html.find("saves  of"), std::string::npos) << html;
}

}  // namespace
}  // namespace commfuse::reports
