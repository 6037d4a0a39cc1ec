// SPDX-License-Identifier: Apache-2.0
#include "reports/tails.h"

#include <gtest/gtest.h>

#include <chrono>
#include <sstream>

namespace commfuse::reports {
namespace {

using namespace std::chrono_literals;

ResultRow row(const char* strategy, Duration p99, Duration low, Duration high) {
  ResultRow row;
  row.ranks = 2;
  row.seq = 4096;
  row.strategy = strategy;
  row.jitter = "default";
  row.seed = 1;
  row.interference = "static";
  row.launch = "stream";
  row.analysis.critical.makespan = 900us;
  row.tails = Tails{.percentiles = {.samples = 1000,
                                    .p50 = {.value = 950us},
                                    .p95 = {.value = 970us},
                                    .p99 = {.value = p99, .range = TimeRange{low, high}},
                                    .p99_9 = {.value = p99 + 10us}}};
  P99Causes& causes = row.tails->causes;
  causes.samples = 11;
  causes.mean = {.makespan = 990us, .stretch = 60us, .tail = 30us};
  causes.on_path = {1.0, 0.0, 0.5, 1.0};
  causes.time_on_path = {800us, 0us, 180us, 20us};
  causes.rank_on_path = {0.25, 1.0};
  causes.rank_time_on_path = {100us, 900us};
  return row;
}

TEST(TailsTable, ShowsPercentilesTheLowestP99AndItsCauses) {
  const std::vector rows{row("sliced", 1100us, 1090us, 1110us), row("commfuse", 1000us, 995us, 1005us)};
  EXPECT_EQ(tails_table(rows),
            "Under jitter 'default', 1000 runs, seed 1\n"
            "ranks 2, seq 4K               p50/us      p95      p99  its 95% interval   p99.9\n"
            "  sliced                       950.0    970.0   1100.0    1090.0..1110.0  1110.0\n"
            "  commfuse                     950.0    970.0   1000.0     995.0..1005.0  1010.0\n"
            "  Lowest p99: commfuse, 9.1% below sliced; their intervals do not overlap.\n"
            "  Causes of the p99: runs between p98.5 and p99.5 against one without jitter;\n"
            "  shares of the time on their critical paths (in parentheses: share of runs that\n"
            "  have such ops there).\n"
            "    sliced: +90.0 us (stretch +60.0, tail +30.0); critical path: essential ops\n"
            "      80% (100%), adds and copies 0% (0%), communication 18% (50%), host 2%\n"
            "      (100%); most on rank 1: 90% (100%).\n"
            "    commfuse: +90.0 us (stretch +60.0, tail +30.0); critical path: essential ops\n"
            "      80% (100%), adds and copies 0% (0%), communication 18% (50%), host 2%\n"
            "      (100%); most on rank 1: 90% (100%).\n");
}

TEST(TailsTable, BlocksOfSeveralSettingsStateTheirSettings) {
  std::vector rows{row("sliced", 1100us, 1090us, 1110us), row("sliced", 1000us, 995us, 1005us)};
  for (ResultRow& named : rows) {
    named.model = "llama-3.1-8b";
    named.scope = "mlp";
    named.hardware = "h100-sxm";
    named.dtype = "bf16";
    named.batch = 1;
  }
  EXPECT_TRUE(tails_table(rows).starts_with("Under jitter")) << tails_table(rows);
  rows[1].batch = 4;
  rows[1].interference = "none";
  const std::string text = tails_table(rows);
  EXPECT_TRUE(text.starts_with("llama-3.1-8b mlp on h100-sxm, batch 1, bf16\nUnder jitter")) << text;
  EXPECT_NE(
      text.find("\n\nllama-3.1-8b mlp on h100-sxm, batch 4, bf16, interference none, launch stream\nUnder jitter"),
      std::string::npos)
      << text;
}

TEST(TailsTable, SchedulesThatTakeNoTimeAreEqual) {
  const std::vector rows{row("sliced", 0us, 0us, 0us), row("commfuse", 0us, 0us, 0us)};
  EXPECT_EQ(tail_verdict(rows),
            "Lowest p99: sliced, 0.0% below commfuse; their intervals overlap, so the samples do not decide which is "
            "lower.");
}

TEST(TailsTable, OverlappingIntervalsDoNotDecideTheLowest) {
  const std::vector rows{row("sliced", 1003us, 1000us, 1010us), row("commfuse", 1000us, 995us, 1005us)};
  EXPECT_EQ(
      tail_verdict(rows),
      "Lowest p99: commfuse, 0.3% below sliced; their intervals overlap, so the samples do not decide which is lower.");
}

TEST(TailsTable, WithoutIntervalsTheSamplesAreTooFewToDecide) {
  std::vector rows{row("sliced", 1003us, 1000us, 1010us), row("commfuse", 1000us, 995us, 1005us)};
  rows.front().tails->percentiles.p99.range.reset();
  EXPECT_EQ(tail_verdict(rows), "Lowest p99: commfuse, 0.3% below sliced; too few samples to decide which is lower.");
}

TEST(TailsTable, EveryJitterHasItsOwnTable) {
  std::vector rows{row("sliced", 1100us, 1090us, 1110us), row("commfuse", 1000us, 995us, 1005us)};
  std::vector alone{rows[0]};
  alone[0].jitter = "quiet";
  alone[0].tails->percentiles.samples = 1;
  rows.insert(rows.begin() + 1, alone[0]);
  const std::string table = tails_table(rows);
  EXPECT_EQ(table, tails_table(std::vector{rows[0], rows[2]}) + "\n" + tails_table(alone));
  EXPECT_NE(table.find("Under jitter 'quiet', 1 run, seed 1\n"), std::string::npos) << table;
}

TEST(TailsTable, MeasuredFactorsBelowOneMayShortenTheRuns) {
  std::vector rows{row("sliced", 800us, 790us, 810us)};
  rows[0].tails->causes.mean = {.makespan = 810us, .tail = 30us};
  const std::string table = tails_table(rows);
  EXPECT_NE(table.find("    sliced: -90.0 us (tail +30.0); critical path:"), std::string::npos) << table;
}

TEST(TailsTable, ABoundHasNoAchievablePercentiles) {
  std::vector rows{row("commfuse", 1000us, 995us, 1005us), row("fused_kernel", 800us, 795us, 805us)};
  rows.back().bound = true;
  EXPECT_EQ(tail_verdict(rows), "commfuse has a p99 of 1000.0 us.");
}

TEST(TailsTable, IsEmptyWithoutJitter) {
  ResultRow without_jitter = row("serial", 1us, 1us, 1us);
  without_jitter.tails.reset();
  EXPECT_EQ(tails_table(std::vector{without_jitter}), "");
}

}  // namespace
}  // namespace commfuse::reports
