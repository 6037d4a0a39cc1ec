// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/sweep_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "model/config_error.h"
#include "tests/golden_file.h"
#include "tests/own_folder.h"
#include "tests/sim/message_of.h"

namespace commfuse {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

/// Settings and axes from sources with a higher precedence than the file.
struct Overrides {
  Texts variables;
  Texts sets;
  std::vector<std::pair<std::string, std::string>> flags;
  Texts axes;
};

class SweepFileTest : public ::testing::Test {
 protected:
  static Sweep sweep(const std::string& body, const Overrides& overrides = {}) {
    std::ofstream("a.yaml") << "schema: commfuse.sweep/1\n" << body;
    Resolver resolver;
    Sweep result = read_sweep("a.yaml", resolver);
    resolver.read_environment(overrides.variables);
    for (const std::string& set : overrides.sets) {
      resolver.read_set(set);
    }
    for (const auto& [key, text] : overrides.flags) {
      resolver.read_flag(*find_field(key), text);
    }
    result.grid.axes = merged_axes(std::move(result.grid.axes), overrides.axes, resolver);
    result.grid.settings = resolver.finish();
    return result;
  }

  /// Returns "ranks x seq x batch" of every point.
  static Texts points(const std::string& body, const Overrides& overrides = {}) {
    Texts texts;
    for (const Settings& settings : points_of(sweep(body, overrides).grid)) {
      texts.push_back(fmt::format("{} {} {}", settings.text("ranks"), settings.text("seq"), settings.text("batch")));
    }
    return texts;
  }

  static std::string refusal(const std::string& body, const Overrides& overrides) {
    try {
      sweep(body, overrides);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }

 private:
  OwnFolder folder_;
};

const std::string two_axes = "set: {batch: 2}\naxes:\n  - ranks: [8, 2]\n  - seq: 1K..4K\n";

TEST_F(SweepFileTest, TheFirstAxisIsOutermostAndValuesKeepTheirOrder) {
  EXPECT_EQ(points(two_axes), (Texts{"8 1K 2", "8 2K 2", "8 4K 2", "2 1K 2", "2 2K 2", "2 4K 2"}));
  EXPECT_EQ(points(""), (Texts{"8 4K 1"}));
}

TEST_F(SweepFileTest, ZipLoadsOnlyTheMachinesOfItsSteps) {
  const auto mistakes = [](const std::string& rates) {
    return test::message_of([&] {
      library_of(sweep("axes:\n  - zip: {hardware: [h100-sxm, dgx-h100-x2], network_bandwidth: " + rates + "}\n").grid);
    });
  };
  EXPECT_EQ(mistakes("[x1, x2]"), "");
  EXPECT_EQ(mistakes("[x2, x1]"),
            "a.yaml:3:5: h100-sxm is one node without a network; remove network_bandwidth, or choose hardware of "
            "several nodes");
}

TEST_F(SweepFileTest, ZipVariesItsListsTogether) {
  EXPECT_EQ(points("axes:\n  - zip: {seq: 1K..4K, batch: [4, 2, 1]}\n  - ranks: 2..3\n"),
            (Texts{"2 1K 4", "3 1K 4", "2 2K 2", "3 2K 2", "2 4K 1", "3 4K 1"}));
}

TEST_F(SweepFileTest, ConstraintsOmitPoints) {
  EXPECT_EQ(points("axes:\n  - seq: 1K..8K\n  - batch: 1..8\nconstraints: [batch*seq == 8K, seq >= 2048]\n"),
            (Texts{"8 2K 4", "8 4K 2", "8 8K 1"}));
}

TEST_F(SweepFileTest, AnAxisOfTheCommandLineReplacesTheAxisOfTheFile) {
  EXPECT_EQ(points(two_axes, {.axes = {"ranks=4"}}), (Texts{"4 1K 2", "4 2K 2", "4 4K 2"}));
  EXPECT_EQ(points(two_axes, {.axes = {"batch=1,2", "ranks=4", "seq=1K"}}), (Texts{"4 1K 1", "4 1K 2"}));
}

TEST_F(SweepFileTest, AValueOfHigherPrecedenceReplacesAnAxis) {
  EXPECT_EQ(points(two_axes, {.flags = {{"ranks", "4"}, {"seq", "1K"}}}), (Texts{"4 1K 2"}));
  EXPECT_EQ(points(two_axes, {.sets = {"ranks=4", "seq=1K", "batch=3"}}), (Texts{"4 1K 3"}));
  EXPECT_EQ(points(two_axes, {.variables = {"COMMFUSE_SEQ=1K"}}), (Texts{"8 1K 2", "2 1K 2"}));
  EXPECT_EQ(points(two_axes, {.variables = {"COMMFUSE_SEQ=1K"}, .axes = {"seq=2K"}}), (Texts{"8 2K 2", "2 2K 2"}));
  EXPECT_EQ(points("axes:\n  - zip: {seq: [1K, 2K, 4K], batch: [1, 2, 1]}\n", {.flags = {{"seq", "1K"}}}),
            (Texts{"8 1K 1", "8 1K 2"}));
  // Within one file, an axis over a setting overrides 'set'.
  EXPECT_EQ(points("set: {seq: 8K}\naxes:\n  - seq: [1K, 2K]\n"), (Texts{"8 1K 1", "8 2K 1"}));
}

TEST_F(SweepFileTest, ContradictionsAreMistakes) {
  EXPECT_EQ(refusal(two_axes, {.flags = {{"seq", "1K"}}, .axes = {"seq=2K,4K"}}),
            "--axis seq=2K,4K: --seq also fixes 'seq'; keep one of them");
  EXPECT_EQ(refusal("", {.axes = {"seq=2K", "seq=4K"}}),
            "--axis seq=4K: 'seq' is already varied by --axis seq=2K; keep one of them");
}

TEST_F(SweepFileTest, ARepeatedStepIsAMistake) {
  EXPECT_EQ(refusal("axes:\n  - ranks: [8, 4, 8]\n", {}), "a.yaml:3:12: '8' is given twice; keep one of them");
  EXPECT_EQ(refusal("axes:\n  - seq: [1K..4K, 2048]\n", {}), "a.yaml:3:10: '2048' is given twice; keep one of them");
  EXPECT_EQ(refusal("axes:\n  - zip: {seq: [1K, 2K, 1024], batch: [1, 1, 1]}\n", {}),
            "a.yaml:3:10: '1024, 1' is given twice; keep one of them");
  EXPECT_EQ(refusal("axes:\n  - zip: {seq: [1K, 1K], batch: [1, 2]}\n", {}), "accepted");
}

TEST_F(SweepFileTest, MistakesFromEverySourceAreReportedTogether) {
  EXPECT_EQ(refusal("set: {seq: x}\naxes:\n  - rank: [2]\nconstraints: ['seq >']\n",
                    {.sets = {"batch=0"}, .flags = {{"dtype", "x"}}, .axes = {"sqe=1K"}}),
            "a.yaml:2:12: 'x' is not a whole number; write one, such as 4K\n"
            "a.yaml:4:5: unknown setting 'rank'; did you mean 'ranks'?\n"
            "a.yaml:5:21: it ends where a number or a setting is expected; complete it, as in \"batch*seq == 128K\"\n"
            "--set batch=0: '0' is out of range; choose 1 to 1G sequences\n"
            "--dtype: unknown dtype 'x'; known dtypes: bf16, fp16, fp32, fp8\n"
            "--axis sqe=1K: unknown setting 'sqe'; did you mean 'seq'?");
}

TEST_F(SweepFileTest, AQuotedConstraintFindsItsColumnToo) {
  for (const char* body : {"constraints:\n  - batch + sqe > 1\n", "constraints:\n  -  'batch+sqe > 1'\n"}) {
    EXPECT_EQ(refusal(body, {}), "a.yaml:3:13: unknown setting 'sqe'; did you mean 'seq'?") << body;
  }
}

TEST_F(SweepFileTest, ItsOutputReadsBackTheSame) {
  const std::string body =
      "title: 'a: b'\nset: {scope: qkv, strategy: {name: [serial, sliced], slices: 4}}\naxes:\n  - zip: {seq: 1K..4K, "
      "batch: [4, 2, 1]}\n  - hardware: [h100-sxm]\nconstraints: [seq % ranks == 0]\noutputs: [json, csv]\n";
  const std::string text = to_yaml(sweep(body, {.flags = {{"ranks", "4"}}}));
  EXPECT_EQ(text, test::golden_file("sim/sweep/written_out.yaml", text));
  std::ofstream("b.yaml") << text;
  Resolver resolver;
  Sweep read_back = read_sweep("b.yaml", resolver);
  read_back.grid.axes = merged_axes(std::move(read_back.grid.axes), {}, resolver);
  read_back.grid.settings = resolver.finish();
  EXPECT_EQ(to_yaml(read_back), text);
}

TEST_F(SweepFileTest, TheOutputHasAbsolutePathsOfModels) {
  fs::copy_file(COMMFUSE_SOURCE_DIR "/configs/models/llama-3.1-70b.yaml", "mine.yaml");
  const Sweep result = sweep("axes:\n  - model: [mine.yaml, llama-3.1-70b]\n");
  EXPECT_NE(to_yaml(result).find("  - model: [" + fs::absolute("mine.yaml").string() + ", llama-3.1-70b]\n"),
            std::string::npos)
      << to_yaml(result);
}

TEST_F(SweepFileTest, TheOutputHasAbsolutePathsOfImplementations) {
  fs::copy_file(COMMFUSE_SOURCE_DIR "/configs/implementations/te.yaml", "mine.yaml");
  const Sweep result = sweep("set: {as: 'flux,./mine.yaml'}\n");
  EXPECT_NE(to_yaml(result).find("flux," + fs::absolute("mine.yaml").string()), std::string::npos) << to_yaml(result);
}

// The current folder may have a file named like a word that names no file.
TEST_F(SweepFileTest, AWordIsNotAPathEvenIfAFileHasItsName) {
  const std::string text = to_yaml(sweep("set: {framework: none, as: all}\n"));
  std::ofstream("none") << "";
  std::ofstream("all") << "";
  EXPECT_EQ(to_yaml(sweep("set: {framework: none, as: all}\n")), text);
}

TEST_F(SweepFileTest, OmittedKeysHaveTheirDefaults) {
  const Sweep result = sweep("");
  EXPECT_EQ(result.title, "a");
  EXPECT_EQ(result.outputs, (Texts{"csv", "json", "report", "map"}));
  EXPECT_FALSE(sweep("outputs: [json]\n").writes("csv"));
}

}  // namespace
}  // namespace commfuse
