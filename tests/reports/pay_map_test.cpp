// SPDX-License-Identifier: Apache-2.0
#include "reports/pay_map.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace commfuse::reports {
namespace {

using namespace std::chrono_literals;

ResultRow row(const char* strategy, Duration makespan, std::int64_t seq, std::int64_t ranks = 8) {
  ResultRow row;
  row.model = "8192x28672";
  row.hardware = "h100-sxm";
  row.scope = "down";
  row.ranks = ranks;
  row.batch = 1;
  row.seq = seq;
  row.dtype = "bf16";
  row.interference = "static";
  row.launch = "stream";
  row.strategy = strategy;
  row.analysis.critical.makespan = makespan;
  return row;
}

ResultRow implemented(Duration makespan, double beats_serial, std::int64_t seq, std::int64_t ranks = 8) {
  ResultRow kernel_row = row("flux", makespan, seq, ranks);
  kernel_row.implements = "fused_kernel";
  kernel_row.beats_serial = beats_serial;
  return kernel_row;
}

TEST(PayMap, ShowsSavingsOfOverlapAndTheirCertainty) {
  std::vector rows{row("serial", 1000us, 1024),    implemented(1250us, 0.02, 1024),    // 25% more
                   row("serial", 1000us, 4096),    implemented(980us, 0.97, 4096),     // too close
                   row("serial", 1000us, 1024, 4), implemented(790us, 0.95, 1024, 4),  // 21% less
                   row("serial", 1000us, 4096, 4), implemented(790us, 0.6, 4096, 4)};  // too uncertain
  rows.push_back(row("serial", 1000us, 8192));
  rows.push_back(implemented(900us, 0.9, 8192));
  rows.back().reason = "it does not divide";
  EXPECT_EQ(pay_maps(rows, {.difference = 0.03, .probability = 0.8}),
            "8192x28672 down on h100-sxm, batch 1, bf16\ntime that overlap saves against serial; columns are sequence "
            "lengths\n"
            "\n"
            "flux, ranks                  1K      4K      8K\n"
            "                       4   +21%    +21%~      -\n"
            "                       8   -25%     +2%~      -\n"
            "\n"
            "~ is a tie; a win needs 3% and a probability of 80%.\n");
}

TEST(PayMap, NamesImplementationsThatOverlapNothing) {
  std::vector rows{row("serial", 1000us, 1024), implemented(790us, 0.95, 1024)};
  EXPECT_EQ(pay_maps(rows, {}).find("overlaps nothing"), std::string::npos);
  rows.back().implements = "serial";
  EXPECT_NE(pay_maps(rows, {}).find("\nflux, which overlaps nothing\n"), std::string::npos) << pay_maps(rows, {});
}

TEST(PayMap, SaysOnWhichGpusNobodyMeasured) {
  std::vector rows{row("serial", 1000us, 1024), implemented(790us, 0.95, 1024)};
  rows.back().warnings = "flux was not measured on GPUs such as H100 SXM";
  EXPECT_EQ(pay_maps(rows, {}).find("not measured"), std::string::npos);  // Only the column counts, not the words.
  rows.back().unmeasured_on = "H100 SXM";
  EXPECT_NE(pay_maps(rows, {}).find("flux, not measured on such GPUs\n  ranks "), std::string::npos)
      << pay_maps(rows, {});
}

TEST(PayMap, NamesUnusualSettings) {
  std::vector rows{row("serial", 1000us, 1024), implemented(790us, 0.95, 1024)};
  for (ResultRow& changed : rows) {
    changed.interference = "none";
  }
  EXPECT_TRUE(
      pay_maps(rows, {}).starts_with("8192x28672 down on h100-sxm, batch 1, bf16, interference none, launch stream\n"))
      << pay_maps(rows, {});
}

TEST(PayMap, ContinuesBelowWhatEightyColumnsHold) {
  std::vector<ResultRow> rows;
  for (std::int64_t seq = 1024; seq <= 131072; seq *= 2) {
    rows.push_back(row("serial", 1000us, seq));
    rows.push_back(implemented(790us, 0.95, seq));
    rows.back().strategy = "triton_distributed";
  }
  EXPECT_EQ(pay_maps(rows, {.difference = 0.03, .probability = 0.8}),
            "8192x28672 down on h100-sxm, batch 1, bf16\ntime that overlap saves against serial; columns are sequence "
            "lengths\n"
            "\n"
            "triton_distributed\n"
            "  ranks                      1K      2K      4K      8K     16K     32K     64K\n"
            "                       8   +21%    +21%    +21%    +21%    +21%    +21%    +21%\n"
            "\n"
            "  ranks                    128K\n"
            "                       8   +21%\n"
            "\n"
            "~ is a tie; a win needs 3% and a probability of 80%.\n");
}

TEST(PayMap, IsEmptyWithoutSerial) {
  const std::vector rows{implemented(790us, 0.95, 1024), row("commfuse", 500us, 1024)};
  EXPECT_EQ(pay_maps(rows, {}), "");
}

TEST(PayMap, IsEmptyWithoutImplementations) {
  const std::vector rows{row("serial", 1000us, 1024), row("fused_kernel", 500us, 1024)};
  EXPECT_EQ(pay_maps(rows, {}), "");
  EXPECT_EQ(pay_maps({}, {}), "");
}

}  // namespace
}  // namespace commfuse::reports
