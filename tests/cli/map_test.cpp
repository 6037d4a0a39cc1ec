// SPDX-License-Identifier: Apache-2.0
// Tests commfuse-sim run -o map and the maps of a sweep, which show the winner at each point.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"

namespace commfuse::test {
namespace {

using nlohmann::json;

void expect_eighty_columns(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(CommfuseSimMap, TheShippedSweepMapsSequenceRanksAndLinkBandwidth) {
  const auto folder = std::filesystem::temp_directory_path() / ("commfuse-map-" + std::to_string(getpid()));
  const Outcome outcome = run_program(
      "commfuse-sim sweep " COMMFUSE_SOURCE_DIR "/configs/sweeps/crossover.yaml -o map --out " + folder.string());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_eighty_columns(outcome.out);
  EXPECT_NE(outcome.out.find("\nranks 8            seq 1K     seq 2K     seq 4K     seq 8K    seq 16K    seq 32K\n"
                             "links x0.25 "),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("\nWhere the winner changes\n  along "), std::string::npos);
  EXPECT_NE(outcome.out.find("Strong scaling: the work is fixed. From 2 to 8 ranks"), std::string::npos);
  const json map = json::parse(contents_of(folder / "map.json"));
  EXPECT_EQ(map.at("maps").size(), 1U);
  EXPECT_EQ(map.at("maps")[0].at("cells").size(), 3U * 5U * 6U);
  EXPECT_FALSE(map.at("maps")[0].at("crossovers").empty());
  EXPECT_EQ(map.at("scaling").size(), 5U * 6U);
  EXPECT_EQ(contents_of(folder / "map.csv").rfind("setting,ranks,seq,link_bandwidth,link_rate_gb_s,", 0), 0U);
  EXPECT_NE(contents_of(folder / "crossovers.csv").find(",link_bandwidth,"), std::string::npos);
  EXPECT_NE(contents_of(folder / "report.html").find("<h2 id=\"ahead\">Where overlap pays</h2>"), std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST(CommfuseSimMap, FilesStateTheSavingOverTheBaselineOfTheMap) {
  const auto folder = std::filesystem::temp_directory_path() / ("commfuse-baseline-" + std::to_string(getpid()));
  for (const std::string framework : {"megatron-core-2024", "none"}) {
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "f.yaml") << "schema: commfuse.sweep/1\nset: {scope: step, model: llama-3.1-8b, ranks: 8, "
                                        "batch: 8, framework: "
                                     << framework << "}\naxes:\n  - seq: [4K, 8K]\n";
    const Outcome outcome =
        run_program("commfuse-sim sweep " + (folder / "f.yaml").string() + " --out " + (folder / "out").string());
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const std::string baseline = framework == "none" ? "serial" : framework;
    const json rows = json::parse(contents_of(folder / "out" / "results.json"));
    const auto time_of = [&](const std::string& strategy, std::int64_t seq) {
      const auto row = std::ranges::find_if(
          rows, [&](const json& known) { return known.at("strategy") == strategy && known.at("seq") == seq; });
      return row->at("time_ms").get<double>();
    };
    const std::string csv = contents_of(folder / "out" / "map.csv");
    EXPECT_NE(csv.find(",probability,baseline,saved_of_baseline\r\n"), std::string::npos);
    for (const json& cell : json::parse(contents_of(folder / "out" / "map.json")).at("maps")[0].at("cells")) {
      EXPECT_EQ(cell.at("baseline"), baseline);
      const std::int64_t seq = cell.at("seq").get<std::int64_t>();
      const auto saved_of = [&](const std::string& strategy) {
        return 1.0 - time_of(cell.at("winner").get<std::string>(), seq) / time_of(strategy, seq);
      };
      EXPECT_NEAR(cell.at("saved_of_baseline").get<double>(), saved_of(baseline), 1e-9);
      EXPECT_NEAR(cell.at("saved_of_serial").get<double>(), saved_of("serial"), 1e-9);
      EXPECT_NEAR(cell.at("saved").get<double>(), saved_of(cell.at("second").get<std::string>()), 1e-9);
      EXPECT_NE(csv.find("," + baseline + "," + cell.at("saved_of_baseline").dump()), std::string::npos) << csv;
    }
    std::filesystem::remove_all(folder);
  }
}

TEST(CommfuseSimMap, AReportedCrossoverIsReal) {
  // At the printed bandwidth the two times are within 3%, though they differ by more on both sides.
  const std::string point = "commfuse-sim run --ranks 4 --seq 1K --strategy ring_exchange,commfuse ";
  const Outcome outcome = run_program(point + "--axis link_bandwidth=x0.25,x0.5 -o map");
  const std::string words = "ring_exchange below about x";
  const std::size_t at = outcome.out.find(words);
  ASSERT_NE(at, std::string::npos) << outcome.out;
  const std::string bandwidth =
      outcome.out.substr(at + words.size() - 1, outcome.out.find(',', at) - at - words.size() + 1);
  const json rows = json::parse(run_program(point + "--link-bandwidth " + bandwidth + " -o json").out);
  EXPECT_NEAR(rows.at(0).at("makespan_us").get<double>() / rows.at(1).at("makespan_us").get<double>(), 1.0, 0.03);
}

TEST(CommfuseSimMap, WorksOnWholeModelsAndReportsWeakScaling) {
  const Outcome step = run_program(
      "commfuse-sim run --scope prefill --model llama-3.1-8b --seq 4K --batch 1 --axis ranks=4,8 "
      "--axis link_bandwidth=x0.5,x1 -o map");
  ASSERT_EQ(step.code, 0) << step.err;
  EXPECT_NE(step.out.find("links x0.5"), std::string::npos) << step.out;
  const Outcome fixed = run_program("commfuse-sim run --link-bandwidth x2 --axis seq=1K,2K -o map");
  EXPECT_EQ(fixed.out.rfind("llama-3.1-70b mlp on h100-sxm, batch 1, bf16, ranks 8, links x2\n", 0), 0U) << fixed.out;
  EXPECT_NE(step.out.find("Strong scaling"), std::string::npos) << step.out;
  expect_eighty_columns(step.out);
  const auto folder = std::filesystem::temp_directory_path() / ("commfuse-weak-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "weak.yaml") << "schema: commfuse.sweep/1\naxes:\n"
                                         "  - zip: {ranks: [2, 4, 8], seq: [2K, 4K, 8K]}\n";
  const Outcome weak =
      run_program("commfuse-sim sweep " + (folder / "weak.yaml").string() + " --out " + (folder / "out").string());
  EXPECT_NE(weak.out.find("Weak scaling: 1K tokens per rank. From 2 to 8 ranks, 100%"), std::string::npos) << weak.out;
  std::filesystem::remove_all(folder);
}

TEST(CommfuseSimMap, APlanThatDoesNotFitKeepsItsRow) {
  const Outcome outcome =
      run_program("commfuse-sim run --scope step --model llama-3.1-8b --batch 8 --seq 4K --axis ranks=2,4,8 -o map");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\nranks 2                 -\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("Of 2 points, "), std::string::npos) << outcome.out;
}

TEST(CommfuseSimMap, AFrameworkIsTheBaselineOfItsSteps) {
  const Outcome outcome = run_program(
      "commfuse-sim run --scope step --model llama-3.1-8b --framework megatron-lm --batch 8 --seq 4K "
      "--axis ranks=4,8 -o map");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("framework megatron-lm"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("/ against serial"), std::string::npos) << outcome.out;
}

TEST(CommfuseSimMap, WithoutASecondPointOrStrategyReportsItsNeeds) {
  const Outcome outcome = run_program("commfuse-sim run --seq 8K -o map");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out,
            "No map: it needs two strategies with results at two points that differ in seq,\n"
            "ranks, link_bandwidth or network_bandwidth.\n");
}

}  // namespace
}  // namespace commfuse::test
