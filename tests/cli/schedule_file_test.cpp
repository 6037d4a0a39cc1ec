// SPDX-License-Identifier: Apache-2.0
// Tests that a schedule written by hand is run, shown, drawn and validated like a generated one.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "tests/cli/program.h"
#include "tests/cli/rows.h"

namespace commfuse::test {
namespace {

using nlohmann::json;

/// Files that are removed after the test.
class ScheduleFiles : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  /// Returns doubling.yaml with one word replaced.
  [[nodiscard]] static std::string doubling(const std::string& old_text, const std::string& new_text) {
    std::string text = contents_of(COMMFUSE_SOURCE_DIR "/configs/schedules/doubling.yaml");
    const std::size_t at = text.find(old_text);
    EXPECT_NE(at, std::string::npos) << old_text;
    return text.replace(at, old_text.size(), new_text);
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("commfuse-schedule-files-" + std::to_string(getpid()));
};

TEST_F(ScheduleFiles, RunTakesRanksDtypeAndScopeFromTheFile) {
  const json rows = rows_of("--schedule doubling --seq 2K");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].at("strategy"), "doubling");
  EXPECT_EQ(rows[0].at("ranks"), 4);
  EXPECT_EQ(rows[0].at("scope"), "qkv");
  EXPECT_EQ(rows[0].at("dtype"), "bf16");
  EXPECT_EQ(rows[0].at("status"), "ok");
  EXPECT_TRUE(rows[0].at("slices").is_null());
  EXPECT_EQ(rows[0].at("schedule_sha256").get<std::string>().size(), 64U);
}

TEST_F(ScheduleFiles, RunRefusesUnfusedWorkThatTheOpsDoNotCompute) {
  const std::string file = write("doubled.yaml", doubling("{m: tokens*4", "{m: tokens*8"));
  const Outcome outcome = run_program("commfuse-sim run --schedule " + file);
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, file +
                             ": unfused has 8 blocks of GEMM tokens x qkv x hidden per rank, but the ops compute 4; "
                             "list the work of one rank before any cutting\n");
}

TEST_F(ScheduleFiles, AMillionRanksAreProvedButNotListed) {
  const std::string file = COMMFUSE_SOURCE_DIR "/tests/fuzz/corpus/schedule/many_ranks.yaml";
  EXPECT_EQ(run_program("commfuse-sim schedule check " + file).code, 0);
  EXPECT_EQ(run_program("commfuse-sim schedule show -o yaml " + file).code, 0);
  const Outcome shown = run_program("commfuse-sim schedule show " + file);
  EXPECT_EQ(shown.code, 2);
  EXPECT_EQ(shown.err, "1048576 ranks are too many to show step by step; choose at most 4096 ranks\n");
  const Outcome mutated = run_program("commfuse-sim schedule mutate " + file);
  EXPECT_EQ(mutated.code, 2);
  EXPECT_EQ(mutated.err, "1048576 ranks are too many to mutate; choose at most 4096 ranks\n");
  const Outcome exported = run_program("commfuse-sim schedule export -o json " + file);
  EXPECT_EQ(exported.code, 2);
  EXPECT_EQ(exported.err, "1048576 ranks are too many to export; choose at most 4096 ranks\n");
}

TEST_F(ScheduleFiles, ManyBlocksAreNotMutated) {
  const std::string file = write("blocks.yaml", R"(schema: commfuse.schedule/1
name: blocks
mesh: {tp: 8}
dimensions: {tokens: 1000000, hidden: 1}
tensors:
  t: {rows: tokens*1000000, columns: hidden*1}
buffers:
  x: {rows: tokens*1000000, columns: hidden*1}
initial:
  - {here: x, tensor: t}
final: []
unfused: []
ops: []
)");
  const Outcome mutated = run_program("commfuse-sim schedule mutate " + file);
  EXPECT_EQ(mutated.code, 0) << mutated.err;
  const Outcome large =
      run_program("commfuse-sim schedule mutate " + write("large.yaml", [&] {
                    std::string text = contents_of(file);
                    for (std::size_t at = text.find("1000000"); at != std::string::npos; at = text.find("1000000")) {
                      text.replace(at, 7, "4000000");
                    }
                    return text;
                  }()));
  EXPECT_EQ(large.code, 2);
  EXPECT_NE(large.err.find("more than 16777216 blocks, too many to mutate"), std::string::npos) << large.err;
}

TEST_F(ScheduleFiles, BothEvaluatorsAgreeOnAProvedRingOfPushes) {
  EXPECT_EQ(run_program("commfuse-sim schedule check push-ring").out,
            "1 schedule proved: matched, free of deadlock and hazards, contents exact\n");
  const json replay = rows_of("--schedule push-ring --seq 2K --evaluator replay");
  const json engine = rows_of("--schedule push-ring --seq 2K --evaluator engine");
  EXPECT_EQ(replay[0].at("makespan_us"), engine[0].at("makespan_us"));
  EXPECT_EQ(run_program("commfuse-validate check push-ring").code, 0);
  const Outcome shown = run_program("commfuse-sim schedule show push-ring");
  EXPECT_NE(shown.out.find("  rank 0: push x[0] to 1; wait for x[3] from 3; compute y[0,0] = x[0] * w[:,0]\n"),
            std::string::npos)
      << shown.out;
  // Lines longer than 80 columns continue on the next line, indented by four columns.
  const std::string unbroken = std::regex_replace(shown.out, std::regex("\n    "), " ");
  EXPECT_NE(unbroken.find("compute y[1,0] = x[1] * w[:,0]; push a credit to 3; wait for a credit from 1\n"),
            std::string::npos)
      << shown.out;
}

TEST_F(ScheduleFiles, ADumpOfAGeneratedScheduleGivesTheRowOfTheGeneratedOne) {
  const std::string dumped =
      write("ring.yaml", run_program("commfuse-sim schedule show --strategy commfuse --form ring "
                                     "--add-lane compute --ranks 4 --scope down -o yaml")
                             .out);
  json rows = rows_of("--schedule " + dumped +
                      " --strategy commfuse --form ring --add-lane compute --directions one --group 1 --inner 1 "
                      "--sub-slices 1 --scope down");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].at("strategy"), "commfuse (ring) down");
  for (const char* column : {"strategy", "form", "add_lane", "sub_slices", "directions", "group", "inner", "lanes"}) {
    rows[0].erase(column);
    rows[1].erase(column);
  }
  EXPECT_EQ(rows[0], rows[1]);
}

TEST_F(ScheduleFiles, NamedStrategiesAppearNextToAFile) {
  const json rows = rows_of("--schedule doubling --strategy serial,commfuse --seq 2K");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].at("strategy"), "serial");
  EXPECT_EQ(rows[1].at("strategy"), "commfuse");
  EXPECT_EQ(rows[2].at("strategy"), "doubling");
  for (const json& row : rows) {
    EXPECT_EQ(row.at("scope"), "qkv");
    EXPECT_EQ(row.at("ranks"), 4);
  }
  EXPECT_EQ(rows_of("--schedule doubling --set strategy.slices=2").size(), 8U);
}

TEST_F(ScheduleFiles, AFileIsRunAtThePointsOfItsRanksOnly) {
  const json rows = rows_of("--schedule doubling --strategy serial --axis ranks=2,4");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].at("ranks"), 2);
  EXPECT_EQ(rows[2].at("strategy"), "doubling");
  EXPECT_EQ(rows[2].at("ranks"), 4);
}

TEST_F(ScheduleFiles, FilesOfDifferentRanksMakeSeparatePoints) {
  const std::string two =
      write("two.yaml", run_program("commfuse-sim schedule show --strategy serial --ranks 2 --scope qkv -o yaml").out);
  const json rows = rows_of("--schedule doubling --schedule " + two);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].at("ranks"), 4);
  EXPECT_EQ(rows[1].at("ranks"), 2);
}

TEST_F(ScheduleFiles, OwnDimensionsTakeTheirSizeFromTheCommandLine) {
  std::string text = doubling("", "");
  for (std::size_t at = text.find("qkv"); at != std::string::npos; at = text.find("qkv", at)) {
    text.replace(at, 3, "experts");
  }
  const std::string file = write("experts.yaml", text);
  const Outcome missing = run_program("commfuse-sim run --schedule " + file);
  EXPECT_EQ(missing.code, 2);
  EXPECT_EQ(missing.err,
            "experts.yaml: dimension 'experts' has no size: a model defines tokens, batch, hidden, qkv, attention, "
            "head, ffn; add --size experts=ELEMENTS\n");
  const json rows = rows_of("--schedule " + file + " --size experts=10K --seq 2K");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].at("scope"), "file");
  // QKV has 10K columns in this model: identical work under a different name.
  const json qkv = rows_of("--schedule doubling --seq 2K");
  EXPECT_EQ(rows[0].at("makespan_us"), qkv[0].at("makespan_us"));
  EXPECT_EQ(rows[0].at("mfu"), qkv[0].at("mfu"));
}

TEST_F(ScheduleFiles, TracesHoldFilesAndStrategies) {
  const std::string trace = path("t.json");
  const Outcome outcome =
      run_program("commfuse-sim run --schedule doubling --strategy serial --seq 2K --trace " + trace);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string text = contents_of(trace);
  EXPECT_NE(text.find("serial \xc2\xb7 rank 0"), std::string::npos);
  EXPECT_NE(text.find("doubling (doubling.yaml) \xc2\xb7 rank 3"), std::string::npos);
  EXPECT_NE(text.find("gemm y[2 +: 2]"), std::string::npos);
}

TEST_F(ScheduleFiles, FiguresDrawFilesAndStrategies) {
  const std::string figure = path("f.svg");
  const Outcome outcome =
      run_program("commfuse-sim run --schedule doubling --strategy serial,commfuse --seq 2K --figure " + figure);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string text = contents_of(figure);
  EXPECT_EQ(text.rfind("<svg", 0), 0U);
  for (const char* words : {"doubling (doubling.yaml)", "serial", "commfuse (ring", "y[2 +: 2]"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words;
  }
  const Outcome two = run_program("commfuse-sim run --schedule doubling --axis seq=1K,2K --figure " + figure);
  EXPECT_EQ(two.code, 2);
  EXPECT_EQ(two.err, "--figure: requires a single point, but there are 2; choose one point, or remove --figure\n");
  const Outcome png = run_program("commfuse-sim run --seq 2K --figure x.png");
  EXPECT_EQ(png.code, 2);
  EXPECT_EQ(
      png.err,
      "--figure writes SVG, and 'x.png' does not end in .svg; rename it, or use commfuse-sim plot for other formats\n");
}

TEST_F(ScheduleFiles, AFailedProofPrintsItsFindingsAndExitsWith4) {
  const std::string wrong = write("wrong.yaml", doubling("waits: [2]", "waits: [0]"));
  const Outcome run = run_program("commfuse-sim run --schedule doubling --schedule " + wrong);
  EXPECT_EQ(run.code, 4);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err, wrong +
                         ": op 4 (gemm) on rank 0 reads row 2 of x while op 2 (exchange) may still be writing it\n" +
                         wrong + ": 7 more errors\n");
  const Outcome show = run_program("commfuse-sim schedule show " + wrong);
  EXPECT_EQ(show.code, 4);
  EXPECT_EQ(show.out, "");
  EXPECT_EQ(show.err, run.err);
  EXPECT_EQ(run_program("commfuse-sim schedule show -o yaml " + wrong).out.rfind("schema: commfuse.schedule/1\n", 0),
            0U);
  const Outcome validate = run_program("commfuse-validate check " + wrong);
  EXPECT_EQ(validate.code, 4);
  EXPECT_NE(validate.out.find("file            4  doubling (wrong.yaml)     no     -         -         -\n"),
            std::string::npos)
      << validate.out;
}

TEST_F(ScheduleFiles, EveryMistakeIsOneSentenceWithItsRemedyAndExitsWith2) {
  const std::string broken = write("broken.yaml", doubling("op: exchange", "op: exchagne"));
  const std::string path_of_doubling = COMMFUSE_SOURCE_DIR "/configs/schedules/doubling.yaml";
  const std::pair<std::string, std::string> mistakes[] = {
      {"commfuse-sim run --schedule absent.yaml",
       "absent.yaml: this file cannot be read; give the path of a schedule in YAML"},
      {"commfuse-sim run --schedule dubling",
       "unknown schedule 'dubling'; did you mean 'doubling'? known: doubling, push-ring, te-external-wgrad, "
       "zero-cta-gather; a path contains '/' or ends in .yaml or .json"},
      {"commfuse-sim run --schedule absent.yaml --schedule " + broken,
       "absent.yaml: this file cannot be read; give the path of a schedule in YAML\n" + broken +
           ":22:17: 'exchagne' is not one of the op kinds; did you mean 'exchange'?"},
      {"commfuse-sim run --schedule doubling --ranks 8",
       "doubling.yaml fixes ranks at 4, but --ranks requests 8; set ranks to 4 or remove the setting"},
      {"COMMFUSE_SCOPE=mlp commfuse-sim run --schedule doubling",
       "doubling.yaml fixes scope at qkv, but COMMFUSE_SCOPE requests mlp; set scope to qkv or remove the setting"},
      {"commfuse-sim run --schedule doubling --seq 1001",
       "1001 tokens cannot be cut into 4 equal blocks, as doubling requires; choose a multiple of 4, such as 1000 or "
       "1004"},
      {"commfuse-sim run --schedule doubling --size qkv=3",
       "--size: the model defines the size of 'qkv'; remove 'qkv' from --size"},
      {"commfuse-sim run --size experts=3", "--size: unknown dimension 'experts'; remove it"},
      {"commfuse-sim run --schedule doubling --size experts",
       "--size: 'experts' is not DIMENSION=ELEMENTS with 1 to 1G elements; write it as in experts=64"},
      {"commfuse-sim run --schedule doubling --size experts=0",
       "--size: 'experts=0' is not DIMENSION=ELEMENTS with 1 to 1G elements; write it as in experts=64"},
      {"commfuse-sim run --schedule doubling --size a=1 --size a=2", "--size: 'a' is given twice; keep one of them"},
      {"commfuse-sim run --schedule doubling --schedule doubling", path_of_doubling + ": is given twice; remove one"},
      {"commfuse-sim schedule mutate doubling doubling", path_of_doubling + ": is given twice; remove one"},
      {"commfuse-sim schedule show doubling --ranks 4",
       "--ranks chooses among generated schedules; remove it, or the file"},
      {"commfuse-sim schedule show doubling --set ranks=4",
       "--set chooses among generated schedules; remove it, or the file"},
      {"commfuse-sim schedule show doubling --config absent.yaml",
       "--config chooses among generated schedules; remove it, or the file"},
      {"commfuse-validate check doubling --ranks 4",
       "--ranks chooses among generated schedules; remove it, or the file"},
      {"commfuse-validate check absent.yaml",
       "absent.yaml: this file cannot be read; give the path of a schedule in YAML"},
  };
  for (const auto& [command, message] : mistakes) {
    const Outcome outcome = run_program(command);
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_EQ(outcome.out, "") << command;
    EXPECT_EQ(outcome.err, message + "\n") << command;
  }
}

}  // namespace
}  // namespace commfuse::test
