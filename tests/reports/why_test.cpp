// SPDX-License-Identifier: Apache-2.0
#include "reports/why.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>

namespace commfuse::reports {
namespace {

using namespace std::chrono_literals;

Explanation example() {
  Explanation explanation;
  explanation.row.model = "llama-3.1-70b";
  explanation.row.hardware = "h100-sxm";
  explanation.row.scope = "mlp";
  explanation.row.ranks = 8;
  explanation.row.batch = 1;
  explanation.row.seq = 8192;
  explanation.row.dtype = "bf16";
  explanation.row.strategy = "serial";
  explanation.row.makespan_error = 0.042;
  explanation.row.mfu = 0.5;
  explanation.row.warnings = "ranks 8: collectives were measured up to 4";
  explanation.row.analysis.critical = {
      .makespan = 2000us, .compute = 1500us, .exposed = 500us, .head = 400us, .tail = 100us};
  explanation.ops = {{.shape = "GEMM 8K x 7K x 8K",
                      .how = "tile 256 x 128, 14 waves, the last 58% full; power sets the time",
                      .kind = PathKind::essential,
                      .count = 1,
                      .shortest = 1500us,
                      .longest = 1500us,
                      .together = 1500us},
                     {.shape = "exchange of 1 MiB",
                      .how = "",
                      .kind = PathKind::communication,
                      .count = 2,
                      .shortest = 200us,
                      .longest = 300us,
                      .together = 500us}};
  explanation.on_path = {1500us, 0us, 400us, 100us};
  explanation.holds = {{.name = "accelerator.hbm_bandwidth",
                        .provenance = Provenance::published,
                        .source = "data sheet",
                        .elasticity = -0.25,
                        .standard_error = 0.1,
                        .effect = -0.024},
                       {.name = "GEMM 8K x 7K x 8K", .standard_error = 0.05, .effect = 0.0125},
                       {.name = "link.peer.latency", .provenance = Provenance::prior, .elasticity = 0.06},
                       {.name = "link.peer.ctas", .provenance = Provenance::prior, .elasticity = 0.0001}};
  return explanation;
}

TEST(Why, TheTextExplainsTimePricesAndSensitivity) {
  EXPECT_EQ(why_text(example(), 12),
            "llama-3.1-70b mlp on h100-sxm, ranks 8, batch 1, seq 8K, bf16\n"
            "serial takes 2000.0 us, one standard error 4.2%; MFU 50.0%.\n"
            "\n"
            "Where the microseconds go\n"
            "      1500.0  compute   essential work, uncut and without interference\n"
            "       500.0  exposed   no compute runs: head 400.0, bubbles 0.0, tail 100.0\n"
            "  Critical path: essential ops 75.0%, communication 20.0%, host 5.0%.\n"
            "\n"
            "Prices of the ops of the critical rank (us)\n"
            "  times            each    together  op\n"
            "      1          1500.0      1500.0  GEMM 8K \u00d7 7K \u00d7 8K\n"
            "           tile 256 x 128, 14 waves, the last 58% full; power sets the time\n"
            "      2    200.0..300.0       500.0  exchange of 1 MiB\n"
            "\n"
            "Sensitivity: a parameter 1% higher, or higher by its standard error\n"
            "      +1%   error  effect  from       parameter\n"
            "   -0.25%   10.0%   -2.4%  published  hbm_bandwidth\n"
            "             5.0%   +1.2%  residual   GEMM 8K \u00d7 7K \u00d7 8K\n"
            "   +0.06%                  prior      link.peer.latency\n"
            "\n"
            "Assumed, not measured: link.peer.latency.\n"
            "Beyond the fit: ranks 8: collectives were measured up to 4.\n");
}

TEST(Why, LinesHaveAtMostEightyColumns) {
  Explanation explanation = example();
  explanation.holds.front().name = "accelerator.matrix_units.bf16.gemm.a_parameter_with_a_name_that_has_no_end";
  explanation.ops.front().how += ", and then so many more words that the line has to be wrapped somewhere";
  explanation.verdict = "commfuse wins (91% sure): 10.1% less time than sliced, 12.5% less time than serial and so on.";
  std::istringstream lines(why_text(explanation, 12));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(Why, RangesOfMillisecondsKeepTheColumns) {
  Explanation slow = example();
  slow.row.analysis.critical.makespan = 900ms;
  slow.ops[0].shortest = slow.ops[0].longest = slow.ops[0].together = 500ms;
  slow.ops[1] = {.shape = "exchange of 1 GiB", .count = 2, .shortest = 100ms, .longest = 300ms, .together = 400ms};
  const std::string text = why_text(slow, 12);
  EXPECT_NE(text.find("  times              each    together  op\n"
                      "      1           500.000     500.000  GEMM 8K \u00d7 7K \u00d7 8K\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("      2  100.000..300.000     400.000  exchange of 1 GiB\n"), std::string::npos) << text;
}

TEST(Why, ShowsTheRequestedNumberOfParameters) {
  const std::string text = why_text(example(), 1);
  EXPECT_NE(text.find("hbm_bandwidth"), std::string::npos);
  EXPECT_EQ(text.find("residual"), std::string::npos);
}

TEST(Why, JsonIsComplete) {
  const auto json = nlohmann::json::parse(why_json(example()));
  EXPECT_EQ(json["schema"], "commfuse.why/1");
  EXPECT_EQ(json["result"]["makespan_us"], 2000.0);
  EXPECT_EQ(json["ops"].size(), 2U);
  EXPECT_EQ(json["ops"][1]["longest_us"], 300.0);
  EXPECT_EQ(json["critical_path_us"]["communication"], 400.0);
  EXPECT_EQ(json["holds"].size(), 4U);
  EXPECT_EQ(json["holds"][0]["provenance"], "published");
  EXPECT_TRUE(json["holds"][1]["provenance"].is_null());
  EXPECT_TRUE(json["holds"][1]["elasticity"].is_null());
}

}  // namespace
}  // namespace commfuse::reports
