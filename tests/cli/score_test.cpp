// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;

class ScoreCommand : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  fs::path folder_ = fs::temp_directory_path() / ("commfuse-score-" + std::to_string(getpid()));
};

constexpr const char* good = "hw,dtype,m,n,k,time_us\nH100,bf16,4096,4096,4096,200\n";

TEST_F(ScoreCommand, WithoutDataItScoresTheShippedTables) {
  const Outcome outcome = run_program("commfuse-sim score");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("nccl_h100_reduce_scatter.csv"), std::string::npos);
  EXPECT_NE(outcome.out.find("commfuse_table1.csv"), std::string::npos);
}

TEST_F(ScoreCommand, JsonHasASchemaAndOneObjectPerTable) {
  const std::string path = write("good.csv", good);
  const Outcome outcome = run_program("commfuse-sim score -o json --data " + path);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("schema"), "commfuse.score/1");
  ASSERT_EQ(json.at("tables").size(), 1U);
  const auto& table = json.at("tables").at(0);
  EXPECT_EQ(table.at("table"), "good.csv");
  EXPECT_EQ(table.at("kind"), "gemm");
  EXPECT_EQ(table.at("n"), 1);
  EXPECT_EQ(table.at("skipped"), 0);
  const double error = table.at("median");
  EXPECT_GT(error, 0.0);
  EXPECT_LT(error, 1.0);
  EXPECT_EQ(table.at("p90"), error);
  EXPECT_EQ(table.at("max"), error);
}

TEST_F(ScoreCommand, RowsAreLinesOfCsv) {
  const std::string path = write("good.csv", good);
  const Outcome rows = run_program("commfuse-sim score --rows --data " + path);
  const Outcome json = run_program("commfuse-sim score -o json --data " + path);
  ASSERT_EQ(rows.code, 0) << rows.err;
  const double error = nlohmann::json::parse(json.out).at("tables").at(0).at("median");
  double predicted = 0.0;
  double signed_error = 0.0;
  ASSERT_EQ(std::sscanf(rows.out.c_str(),
                        "table,line,machine,part,measured_us,predicted_us,error,measured_factor,predicted_factor\n"
                        "good.csv,2,h100-sxm,bf16,200,%lf,%lf,,\n",
                        &predicted, &signed_error),
            2)
      << rows.out;
  for (const char* other : {" -o json", " --dynamic"}) {
    const Outcome refused = run_program(std::string("commfuse-sim score --rows") + other);
    EXPECT_EQ(refused.code, 2);
    EXPECT_EQ(refused.err, "--rows prints only CSV of tables; remove --dynamic and -o\n");
  }
  EXPECT_NEAR(std::abs(signed_error), error, 1e-4);
  EXPECT_NEAR(predicted / 200.0 - 1.0, signed_error, 1e-4);
}

TEST_F(ScoreCommand, FaultyRowsAreNamedOnStderrAndTheExitCodeIs3) {
  const std::string path = write("bad.csv", std::string(good) + "H100,bf16,4096,4096,4096,NaN\n");
  const Outcome outcome = run_program("commfuse-sim score --data " + path);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.err, path + ":3: time_us is NaN; a measurement must be a finite number above 0\n");
  EXPECT_NE(outcome.out.find("bad.csv"), std::string::npos);
}

TEST_F(ScoreCommand, AMissedGateExitsWith4) {
  const std::string path = write("good.csv", good);
  EXPECT_EQ(run_program("commfuse-sim score --max-median 99 --max-p90 99 --data " + path).code, 0);
  const Outcome median = run_program("commfuse-sim score --max-median 0.01 --data " + path);
  EXPECT_EQ(median.code, 4);
  EXPECT_NE(median.err.find("good.csv: median "), std::string::npos) << median.err;
  EXPECT_NE(median.err.find("% is over 0.01%"), std::string::npos) << median.err;
  EXPECT_EQ(run_program("commfuse-sim score --max-p90 0.01 --data " + path).code, 4);
}

TEST_F(ScoreCommand, AGateThatAppliesToNoRowIsAMistake) {
  const std::string path = write("good.csv", good);
  const Outcome nan = run_program("commfuse-sim score --max-median nan --data " + path);
  EXPECT_EQ(nan.code, 2);
  EXPECT_EQ(nan.err, "--max-median: nan is not a percentage; write one, as in 8\n");
  EXPECT_EQ(run_program("commfuse-sim score --max-p90 nan --data " + path).code, 2);
  const Outcome kind = run_program("commfuse-sim score --kind attention --max-median 1 --data " + path);
  EXPECT_EQ(kind.code, 2);
  EXPECT_EQ(kind.out, "");
  EXPECT_EQ(kind.err, "--kind attention: no table of this kind was scored; name one with --data, or remove --kind\n");
  const std::string skipped = write("skipped.csv", "hw,dtype,m,n,k,time_us\nTPU,bf16,4096,4096,4096,200\n");
  const Outcome ungated = run_program("commfuse-sim score --data " + skipped);
  EXPECT_EQ(ungated.code, 0);
  EXPECT_EQ(ungated.out, "not scored\n  skipped.csv: 1 skipped: no hardware file is known as 'TPU'\n");
  const Outcome none = run_program("commfuse-sim score --kind gemm --data " + skipped);
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(none.err,
            "--kind gemm: no table of this kind was scored (no hardware file is known as 'TPU'); name one with --data, "
            "or remove --kind\n");
  const Outcome gate = run_program("commfuse-sim score --max-p90 20 --data " + skipped);
  EXPECT_EQ(gate.code, 2);
  EXPECT_EQ(gate.err,
            "--max-p90: no row was scored (no hardware file is known as 'TPU'); name other tables with --data, or "
            "remove --max-p90\n");
}

TEST_F(ScoreCommand, CellsThatAreNotUtf8StillMakeJson) {
  const std::string path = write("latin1.csv", std::string(good) + "H100,bf\xff,4096,4096,4096,200\n");
  const Outcome outcome = run_program("commfuse-sim score -o json --data " + path);
  EXPECT_NE(outcome.code, 1) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out).at("tables").size(), 1U);
}

TEST_F(ScoreCommand, AFolderAddsItsTablesAndThoseOfSubfolders) {
  fs::create_directories(folder_ / "below");
  write("below/one.csv", good);
  write("two.csv", good);
  write("README.md", "no table");
  const Outcome outcome = run_program("commfuse-sim score -o json --data " + folder_.string());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out).at("tables").size(), 2U);
}

TEST_F(ScoreCommand, KindSelectsTables) {
  write("one.csv", good);
  write("two.csv", "# hardware: 8x H100\nop,ngpus,bytes,time_us\nall_gather,8,1048576,20\n");
  const Outcome outcome = run_program("commfuse-sim score -o json --kind collective --data " + folder_.string());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json.at("tables").size(), 1U);
  EXPECT_EQ(json.at("tables").at(0).at("table"), "two.csv");
}

TEST_F(ScoreCommand, HardwareSelectsRowsAndTables) {
  write("both.csv", std::string(good) + "A100-SXM4-80GB,bf16,4096,4096,4096,600\n");
  write("one.csv", "hw,dtype,m,n,k,time_us\nA100-SXM4-80GB,bf16,4096,4096,4096,600\n");
  const auto tables = [&](const std::string& flags) {
    const Outcome outcome = run_program("commfuse-sim score -o json " + flags + " --data " + folder_.string());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out).at("tables");
  };
  const auto h100 = tables("--hardware H100");  // People type this for h100-sxm.
  ASSERT_EQ(h100.size(), 1U);
  EXPECT_EQ(h100.at(0).at("table"), "both.csv");
  EXPECT_EQ(h100.at(0).at("n"), 1);
  EXPECT_EQ(h100.at(0).at("skipped"), 1);
  EXPECT_EQ(h100.at(0).at("machines"), nlohmann::json::array({"h100-sxm"}));
  for (const char* both : {"--hardware h100-sxm,a100-sxm-80", "--hardware h100-sxm --hardware a100-sxm-80", ""}) {
    const auto scored = tables(both);
    ASSERT_EQ(scored.size(), 2U) << both;
    EXPECT_EQ(scored.at(0).at("n"), 2) << both;
  }
}

/// Tables of schedules name their machine as the catalogue does.
TEST_F(ScoreCommand, HardwareSelectsSchedules) {
  write("schedules.csv",
        "hw,model,scope,ranks,batch,seq,dtype,strategy,time_us\n"
        "h100-sxm,llama-3.1-8b,mlp,8,1,4096,bf16,serial,700\na100-sxm-80,llama-3.1-8b,mlp,8,1,4096,bf16,serial,1400\n");
  const Outcome outcome = run_program("commfuse-sim score -o json --hardware h100-sxm --data " + folder_.string());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json.at("tables").size(), 1U);
  EXPECT_EQ(json.at("tables").at(0).at("kind"), "overlap_schedules");
  EXPECT_EQ(json.at("tables").at(0).at("machines"), nlohmann::json::array({"h100-sxm"}));
  EXPECT_EQ(json.at("tables").at(0).at("n"), 1);
}

TEST_F(ScoreCommand, UnknownHardwareIsRefusedWithTheKnownNames) {
  const std::string path = write("good.csv", good);
  const Outcome misspelled = run_program("commfuse-sim score --hardware h100-sxn --data " + path);
  EXPECT_EQ(misspelled.code, 2);
  EXPECT_EQ(misspelled.err, "--hardware: unknown hardware 'h100-sxn'; did you mean 'h100-sxm'?\n");
  const Outcome unknown = run_program("commfuse-sim score --hardware abacus-of-wood --data " + path);
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("--hardware: unknown hardware 'abacus-of-wood'; known hardware: "), std::string::npos);
  EXPECT_NE(unknown.err.find(", h100-sxm, "), std::string::npos) << unknown.err;
  const Outcome cluster = run_program("commfuse-sim score --hardware dgx-h100-x2 --data " + path);
  EXPECT_EQ(cluster.code, 2);
  EXPECT_EQ(cluster.err,
            "--hardware: 'dgx-h100-x2' is a cluster; name the hardware of its nodes, such as h100-sxm, which includes "
            "rows of several nodes\n");
  const Outcome none = run_program("commfuse-sim score --hardware b200-sxm --data " + path);
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(none.err,
            "--hardware b200-sxm: no row of this hardware was scored (measured on hardware that --hardware does not "
            "name); name tables with --data, or remove --hardware\n");
}

TEST_F(ScoreCommand, UnknownKindsAndFilesThatAreNotTablesAreRefused) {
  const Outcome kind = run_program("commfuse-sim score --kind gem --max-median 1");
  EXPECT_EQ(kind.code, 2);
  EXPECT_EQ(kind.err.find("--kind: unknown kind 'gem'; did you mean 'gemm'?"), 0U) << kind.err;
  const std::string path = write("settings.yaml", "seq: 1K\n");
  const Outcome file = run_program("commfuse-sim score --max-median 1 --data " + path);
  EXPECT_EQ(file.code, 2);
  EXPECT_EQ(file.err, path +
                          ":1: its columns match no kind of table that score reads; the first line names them, "
                          "as in hw,dtype,m,n,k,time_us\n");
  const std::string wide = write("wide.csv", std::string("\xff\xfeh\0w\0", 6));
  EXPECT_EQ(run_program("commfuse-sim score --data " + wide).err, wide + ": it is in UTF-16; save it in UTF-8\n");
}

TEST_F(ScoreCommand, FlagsWithAnOutputOfTheirOwnRefuseOthers) {
  const auto refusal = [](const std::string& flags) {
    const Outcome outcome = run_program("commfuse-sim score " + flags);
    EXPECT_EQ(outcome.code, 2) << flags;
    EXPECT_EQ(outcome.out, "") << flags;
    return outcome.err;
  };
  EXPECT_EQ(refusal("--pairs -o json"), "--pairs prints only text; remove -o\n");
  EXPECT_EQ(refusal("--pairs -o markdown"), "--pairs prints only text; remove -o\n");
  EXPECT_EQ(refusal("--implementations -o json"), "--implementations prints only YAML; remove -o\n");
  const std::string help = "; see commfuse-sim score --help\n";
  EXPECT_EQ(refusal("--implementations --pairs"), "--implementations excludes --pairs" + help);
  EXPECT_EQ(refusal("--implementations --dynamic"), "--implementations excludes --dynamic" + help);
  EXPECT_EQ(refusal("--pairs --dynamic"), "--pairs excludes --dynamic" + help);
}

TEST_F(ScoreCommand, VerdictsWithoutDegradedNodesHaveAnEmptyList) {
  std::string rows = "# hardware: 8x RTX PRO 6000 Blackwell server, PCIe 5, no NVLink\nop,ngpus,bytes,time_us\n";
  for (std::int64_t bytes = 1024; bytes <= std::int64_t{1} << 30U; bytes *= 2) {
    const std::string row = ",8," + std::to_string(bytes) + "," + std::to_string(40 + bytes / 15000) + "\n";
    rows += "all_gather" + row + "all_reduce" + row;
  }
  const std::string path = write("nccl_rtxpro6000_pcie_aic.csv", rows);  // This name says that the node is healthy.
  const Outcome outcome = run_program("commfuse-sim score --verdicts -o json --data " + path);
  EXPECT_EQ(outcome.code, 4);
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("healthy"), 1);
  EXPECT_EQ(json.at("degraded"), nlohmann::json::array());
  const Outcome table = run_program("commfuse-sim score --verdicts --data " + path);
  EXPECT_EQ(table.out.find("Degraded nodes"), std::string::npos) << table.out;
}

TEST_F(ScoreCommand, AMissingFileIsAUserError) {
  const Outcome outcome = run_program("commfuse-sim score --data /nowhere/at/all.csv");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "--data '/nowhere/at/all.csv': no such file or folder; check the path\n");
}

}  // namespace
}  // namespace commfuse::test
