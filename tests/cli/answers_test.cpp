// SPDX-License-Identifier: Apache-2.0
// Questions whose answers follow from a calculation by hand or from a law, and that earlier versions answered wrongly.
// run_steps_test.cpp tests that a graph does not slow decoding.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program.h"
#include "tests/cli/rows.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

using nlohmann::json;

double microseconds(const json& row) { return row.at("makespan_us").get<double>(); }

/// Returns true for rows of bounds, which may be faster than any schedule that wires and whole kernels allow.
bool is_bound(const json& row) { return row.at("verdict") == "bound"; }

std::vector<double> numbers_of(const json& rows, const char* column) {
  std::vector<double> numbers;
  std::ranges::transform(rows, std::back_inserter(numbers), [&](const json& row) { return row.at(column); });
  return numbers;
}

// Half of 8K tokens of 8192 bf16 values, the shards of four GPUs, crosses to the other socket at 7.875 GB/s: 8.5 ms.
TEST(KnownAnswers, EightGpusBehindTwoPcieRootsTieAndNoneBeatsTheRoot) {
  const json rows = rows_of("--hardware l40s-pcie --ranks 8 --seq 8K --scope gate_up");
  ASSERT_GE(rows.size(), 3U);
  for (const json& row : rows) {
    EXPECT_TRUE(is_bound(row) || microseconds(row) >= 8500.0) << row;
    EXPECT_NE(row.at("verdict"), "wins") << row;
  }
}

// Half of 8K tokens of 4096 bf16 values crosses to the other node twice: 33.6 MB through two NICs of 12.5 GB/s.
TEST(KnownAnswers, AnMlpOverTwoNodesIsNoFasterThanItsNics) {
  const json rows = rows_of("--model llama-3.1-8b --hardware a100-100g-x2 --ranks 16 --seq 8K");
  ASSERT_GE(rows.size(), 3U);
  for (const json& row : rows) {
    EXPECT_TRUE(is_bound(row) || microseconds(row) >= 2 * 1e6 * 8192 * 4096 * 2 / 2 / 25e9) << row;
  }
}

// The network is slowed down a hundredfold, so that only its rate matters.
TEST(KnownAnswers, GradientsTakeHalfTheTimeOverTwiceTheNics) {
  const OwnFolder folder;
  std::vector<double> times;
  for (const int nics : {1, 2, 4, 8}) {
    std::ofstream(fmt::format("nic-{}.yaml", nics)) << fmt::format(
        "# Two nodes of eight GPUs with {0} NICs each.\nschema: commfuse.cluster/1\nname: nic-{0}\nhardware: h100-sxm\n"
        "nodes: 2\nnetwork:\n  name: {0} NICs\n  nics_per_node: {0}\n"
        "  nominal_rate: {{value: 50 GB/s, provenance: \"prior: test\"}}\n"
        "  hop_latency: {{value: 700 ns, provenance: \"prior: test\"}}\n  peer:\n"
        "    latency: {{value: 12 us, provenance: \"prior: test\"}}\n"
        "    rate: {{value: 36 GB/s, provenance: \"prior: test\"}}\n"
        "    ctas: {{value: 2, provenance: \"prior: test\"}}\n"
        "    issue_cost: {{value: 5 us, provenance: \"prior: test\"}}\n  collective:\n"
        "    base_latency: {{value: 20 us, provenance: \"prior: test\"}}\n"
        "    step_latency: {{value: 4 us, provenance: \"prior: test\"}}\n"
        "    rate: {{value: {1} GB/s, provenance: \"prior: test\"}}\n"
        "    own_copy_rate: {{value: 600 GB/s, provenance: \"prior: test\"}}\n"
        "    ramp_size: {{value: 0 B, provenance: \"prior: test\"}}\n"
        "    ctas: {{value: 24, provenance: \"prior: test\"}}\n"
        "    issue_cost: {{value: 5 us, provenance: \"prior: test\"}}\n",
        nics, 46 * nics);
    const json rows = rows_of(
        fmt::format("--scope step --model llama-3.1-8b --hardware ./nic-{}.yaml --network-bandwidth x0.01 --ranks 8 "
                    "--data-parallel 2 --batch 2 --seq 1K --strategy serial",
                    nics));
    ASSERT_EQ(rows.size(), 1U);
    times.push_back(rows.front().at("gradients_ms").get<double>());
  }
  for (std::size_t i = 1; i < times.size(); ++i) {
    EXPECT_NEAR(times[i - 1] / times[i], 2.0, 0.02) << i;
  }
}

TEST(KnownAnswers, FasterLinksNeverMakeAResultSlower) {
  const std::vector<double> fixed = numbers_of(
      rows_of("--model llama-2-7b --hardware a100-sxm-80 --scope qkv_backward --ranks 8 --seq 512 --strategy serial "
              "--axis link_bandwidth=x1,x1.3,x1.5,x2"),
      "makespan_us");
  ASSERT_EQ(fixed.size(), 4U);
  EXPECT_TRUE(std::ranges::is_sorted(fixed, std::greater<>{})) << json(fixed);
  const std::vector<double> dynamic = numbers_of(
      rows_of("--model llama-3.1-8b --hardware gb200 --scope qkv_backward --ranks 8 --seq 1K --strategy sliced "
              "--interference dynamic --launch graph --axis link_bandwidth=x1,x2,x8"),
      "makespan_us");
  ASSERT_EQ(dynamic.size(), 3U);
  EXPECT_LE(dynamic[1], 1.01 * dynamic[0]);
  EXPECT_LE(dynamic[2], 1.01 * dynamic[1]);
}

// Nothing can hide the first gather and the last scatter, even on the fastest network.
TEST(KnownAnswers, ZeroThreeGainsFromEveryFasterNetwork) {
  const std::vector<double> times = numbers_of(
      rows_of("--scope step --model llama-3.1-70b --hardware dgx-h100-x2 --ranks 4 --data-parallel 512 --zero 3 "
              "--batch 2K --seq 8K --strategy commfuse --uncertainty off --axis network_bandwidth=x1,x2,x4,x16"),
      "time_ms");
  ASSERT_EQ(times.size(), 4U);
  for (std::size_t i = 1; i < times.size(); ++i) {
    EXPECT_LT(times[i], times[i - 1]) << i;
  }
}

// On this machine one fused kernel takes longer than CommFuse's schedule, because the kernel moves no data during its
// attention core.
TEST(KnownAnswers, TheBoundOfAttentionIsBelowEverySchedule) {
  const std::string command =
      "--model qwen2.5-72b --hardware tpu-v5p --scope attention --ranks 8 --batch 4 --seq 16K --interference none "
      "--link-bandwidth x0.5 --strategy commfuse,sliced,fused_kernel";
  const json rows = rows_of(command);
  ASSERT_EQ(rows.size(), 3U);
  const auto fused = std::ranges::find(rows, "fused_kernel", [](const json& row) { return row.at("strategy"); });
  ASSERT_NE(fused, rows.end());
  const bool is_below =
      std::ranges::all_of(rows, [&](const json& row) { return microseconds(*fused) <= microseconds(row); });
  const Outcome table = run_program("commfuse-sim run " + command);
  EXPECT_EQ(table.out.find("fused_kernel (bound") != std::string::npos, is_below) << table.out;
}

TEST(KnownAnswers, CuttingAGemmDoesNotMakeItCheaper) {
  const json rows = rows_of(
      "--model mistral-7b --hardware a100-100g-x2 --scope down --ranks 4 --batch 2 --interference dynamic --launch "
      "graph --seq 512");
  ASSERT_GE(rows.size(), 3U);
  for (const json& row : rows) {
    EXPECT_TRUE(is_bound(row) || row.at("slicing_us").get<double>() >= 0.0) << row;
  }
}

TEST(KnownAnswers, AReportComparesStrategiesOnAnAxis) {
  const OwnFolder folder;
  std::ofstream("sweep.yaml") << "schema: commfuse.sweep/1\ntitle: strategies on an axis\naxes:\n"
                                 "  - strategy.name: [serial, sliced, commfuse]\n  - seq: [4K, 8K]\n";
  const Outcome sweep = run_program("commfuse-sim sweep sweep.yaml --out sweep --uncertainty off");
  ASSERT_EQ(sweep.code, 0) << sweep.err;
  ASSERT_EQ(run_program("commfuse-sim report sweep --out page.html").code, 0);
  const std::string page = contents_of("page.html");
  const std::size_t lead = page.find("<p class=\"lead\">");
  ASSERT_NE(lead, std::string::npos);
  const std::string verdict = page.substr(lead, page.find("<dl", lead) - lead);
  EXPECT_NE(verdict.find("Overlap saves 23.4% of serial&#39;s time at ranks 8, seq 8K."), std::string::npos) << verdict;
  EXPECT_NE(page.find("Overlap pays at"), std::string::npos);
}

TEST(KnownAnswers, ACoinTossIsNotAWin) {
  const Outcome run = run_program("commfuse-sim run --hardware mi300x --seq 8K");
  ASSERT_EQ(run.code, 0) << run.err;
  const std::size_t wins = run.out.find(" wins (");
  if (wins == std::string::npos) {
    EXPECT_NE(run.out.find("Tie: "), std::string::npos) << run.out;
  } else {
    const bool is_certain = run.out.compare(wins, 14, " wins (over 99") == 0;
    EXPECT_TRUE(is_certain || std::stod(run.out.substr(wins + 7)) >= 80.0) << run.out;
  }
}

}  // namespace
}  // namespace commfuse::test
