// SPDX-License-Identifier: Apache-2.0
#include "reports/reliability.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <sstream>

#include "reports/residuals.h"

namespace commfuse::reports {
namespace {

/// Returns ten rows of ten shapes, each off by the given number of standard errors.
CheckedKind kind(const std::string& name, const std::string& machine, bool fitted, const std::array<double, 10>& off) {
  CheckedKind checked{.kind = name, .machine = machine, .fitted = fitted, .times = {}};
  for (std::size_t i = 0; i < off.size(); ++i) {
    checked.times.push_back({.distance = 0.04 * off[i], .error = 0.04, .shape = {static_cast<std::int64_t>(i)}});
  }
  return checked;
}

constexpr std::array<double, 10> calibrated{0, 0.1, 0.2, 0.3, 0.4, 0.8, 0.9, 1.3, 1.4, 2.5};
constexpr std::array<double, 10> overconfident{0, 3, 3, 3, 3, 3, 3, 3, 3, 9};

std::vector<TableScore> scores() {
  TableScore score{.table = "x.csv", .kind = "gemm"};
  score.checked = {kind("GEMM bf16", "h100-sxm", true, calibrated), kind("GEMM fp8", "b200-sxm", false, overconfident)};
  score.judged = {{.ways = "GEMM whole or in slices",
                   .machine = "h100-sxm",
                   .pairs = {{.probability = 0.87, .came_true = true, .shape = {1}},
                             {.probability = 0.87, .came_true = false, .shape = {2}}}}};
  score.observations = {{.what = "send|recv: p90", .machine = "h100-sxm", .measured = 1.1, .predicted = 1.05}};
  TableScore degraded = score;
  degraded.degraded = true;
  TableScore published = score;  // a table of configs/published with the rows of the first table
  published.brought_along = true;
  return {score, degraded, published};
}

TEST(ReliabilityReport, NamesTheWorstFirstAndFitsEightyColumns) {
  const std::string text = reliability_table(scores());
  const std::size_t worst = text.find("worst: GEMM fp8 on b200-sxm (no fit): 68% intervals hold 10%, 95%");
  ASSERT_NE(worst, std::string::npos) << text;
  EXPECT_LT(worst, text.find("share inside in %"));
  EXPECT_EQ(text.find("worst: GEMM bf16"), std::string::npos) << text;
  EXPECT_NE(text.find("    h100-sxm                           10   50±33   70±30   90±20   90±14   ±4.0\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("    pairs                     0       0       0       2       0       0       0\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("    Brier score 0.387 over 2 pairs\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  h100-sxm: send|recv: p90                              1.100     1.050    4.5%\n"),
            std::string::npos)
      << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::size_t columns = 0;
    for (const char c : line) {
      columns += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
    }
    EXPECT_LE(columns, 80U) << line;
  }
}

TEST(ReliabilityReport, JsonHasTheSharesAsFractions) {
  nlohmann::ordered_json object;
  add_reliability(object, scores());
  ASSERT_EQ(object["coverage"].size(), 2U);
  const auto& row = object["coverage"][1];
  EXPECT_EQ(row["kind"], "GEMM fp8");
  EXPECT_EQ(row["machine"], "b200-sxm");
  EXPECT_EQ(row["fitted"], false);
  EXPECT_EQ(row["n"], 10);
  EXPECT_EQ(row["levels"][1]["level"], 0.68);
  EXPECT_EQ(row["levels"][1]["share"], 0.1);
  ASSERT_EQ(object["win_probabilities"].size(), 2U);
  EXPECT_TRUE(object["win_probabilities"][0]["ways"].is_null());
  EXPECT_EQ(object["win_probabilities"][1]["ways"], "GEMM whole or in slices");
  EXPECT_EQ(object["win_probabilities"][1]["bins"][3]["n"], 2);
  EXPECT_EQ(object["observations"][0]["predicted"], 1.05);
}

TEST(ReliabilityReport, TheSummaryStatesThePracticalMeaning) {
  const std::string text = reliability_section(scores());
  // The seventh and the ninth of ten rows are 0.9 and 1.4 standard errors off: 3.6 and 5.6%.
  EXPECT_NE(text.find("- ops whose fit read other rows of the same table (10 times): within 3.6% in 68 of 100 cases, "
                      "within 5.6% in 95.\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("- 80-90% sure: stated 87.0% on average, 50 of 100 came true (2 pairs).\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("1. GEMM fp8 on b200-sxm (no fit): 68% intervals hold 10%, 95% intervals 10% (10 times)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("| send\\|recv: p90 | h100-sxm | 1.100 | 1.050 | 4.5% | 0.50 |\n"), std::string::npos) << text;
}

TEST(ReliabilityReport, ResidualsAreComparedWithThoseOfTheFile) {
  TableScore score{.table = "x.csv", .kind = "gemm"};
  FitRows fit{.machine = "h100-sxm", .key = "accelerator.attention.fit.residual", .residual = 0.2, .rows = {}};
  for (std::int64_t i = 0; i < 149; ++i) {
    fit.rows.push_back({.distance = 0.05 * 0.993666938968772, .parameters = 0.03, .shape = {i}});
  }
  score.fits = {fit};
  EXPECT_EQ(residuals_table(std::vector{score}),
            "h100-sxm\n  accelerator.attention.fit.residual: 0.2000 stays: 149 rows read, fewer than 150\n");
  EXPECT_TRUE(nlohmann::json::parse(residuals_json(std::vector{score}))[0]["new_residual"].is_null());
  score.fits.front().rows.resize(1);
  EXPECT_EQ(residuals_table(std::vector{score}),
            "h100-sxm\n  accelerator.attention.fit.residual: 0.2000 stays: 1 row read, fewer than 150\n");
  fit.rows.push_back(fit.rows.back());
  fit.rows.push_back({.distance = 0.1, .parameters = 0.03, .shape = {500}, .held_out = true});
  score.fits = {fit};
  EXPECT_EQ(residuals_table(std::vector{score}),
            "h100-sxm\n  accelerator.attention.fit.residual: 0.2000 -> 0.0408\n"
            "    150 rows read; 1 held out: 68% hold 100±91 -> 0±91, 95% hold 100±43 -> 100±43\n"
            "    by_limit.compute: 1.000 -> 1.000, 150 rows read\n");
  const auto json = nlohmann::json::parse(residuals_json(std::vector{score}));
  EXPECT_EQ(json[0]["key"], "accelerator.attention.fit.residual");
  EXPECT_NEAR(json[0]["new_residual"].get<double>(), 0.0408, 1e-4);
  EXPECT_EQ(json[0]["then"][1]["share"], 0.0);
  EXPECT_EQ(json[0]["read_by_limit"]["compute"], 150);
  EXPECT_EQ(json[0]["new_by_limit"]["latency"], 1.0);
  EXPECT_EQ(residuals_table({}), "no fit has read any of these tables\n");
}

TEST(ReliabilityReport, CountsTablesOfTheProjectIfThereAreNoOthers) {
  TableScore score = scores().front();
  score.brought_along = true;
  nlohmann::ordered_json object;
  add_reliability(object, std::vector{score});
  EXPECT_EQ(object["coverage"].size(), 2U);
}

TEST(ReliabilityReport, CountsASinglePairInTheSingular) {
  TableScore score = scores().front();
  score.judged.front().pairs.resize(1);
  const std::string text = reliability_table(std::vector{score});
  EXPECT_NE(text.find("    Brier score 0.017 over 1 pair\n"), std::string::npos) << text;  // (1 - 0.87)^2
}

TEST(ReliabilityReport, IsEmptyWithoutChecks) {
  EXPECT_EQ(reliability_table({}), "");
  EXPECT_EQ(reliability_section({}), "");
}

}  // namespace
}  // namespace commfuse::reports
