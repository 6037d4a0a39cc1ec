// SPDX-License-Identifier: Apache-2.0
// Tests that output begins with a warning if the memory of a GPU is too small, for any scope and command.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

using nlohmann::json;

const std::string start = "Out of memory";

bool begins(const std::string& text) { return text.compare(0, start.size(), start) == 0; }

/// Returns the first sentence of a string with line breaks.
std::string first_sentence(std::string text) {
  for (std::size_t at = text.find("\n  "); at != std::string::npos; at = text.find("\n  ")) {
    text.replace(at, 3, " ");
  }
  return text.substr(0, text.find('\n'));
}

/// A scope, with options for more tokens than a GPU with 48 GB can hold.
struct Case {
  std::string scope;
  std::string options;
};

class LayerMemory : public testing::TestWithParam<Case> {};

TEST_P(LayerMemory, WarningIsInTheFirstLineAndInTheRow) {
  const std::string command =
      fmt::format("commfuse-sim run --scope {} --hardware l40s-pcie --ranks 4 --strategy serial {}", GetParam().scope,
                  GetParam().options);
  const Outcome rows = run_program(command + " -o json");
  ASSERT_EQ(rows.code, 0) << rows.err;
  const json row = json::parse(rows.out).front();
  const double needed = row.at("buffer_bytes").get<double>() / 1e9;
  ASSERT_GT(needed, 48.0);
  const std::string sentence = fmt::format(
      "a GPU needs {:.2f} GB, but l40s-pcie has 48.00 GB per GPU, so use more ranks or fewer tokens", needed);
  EXPECT_EQ(row.at("warnings").get<std::string>().substr(0, 15 + sentence.size()), "out of memory: " + sentence);

  const Outcome table = run_program(command);
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(first_sentence(table.out), "Out of memory: " + sentence + ".");
  EXPECT_EQ(table.out.find("Beyond the fit: out of memory"), std::string::npos) << table.out;
}

INSTANTIATE_TEST_SUITE_P(Scopes, LayerMemory,
                         testing::Values(Case{"mlp", "--model llama-3.1-70b --seq 1M"},
                                         Case{"down", "--model llama-3.1-70b --seq 2M"},
                                         Case{"attention", "--model llama-3.1-70b --seq 128K --batch 16"},
                                         Case{"layer", "--model llama-3.1-70b --seq 128K --batch 8"},
                                         Case{"mlp_ar", "--model llama-3.1-70b --seq 1M"},
                                         Case{"gate_up_backward", "--model llama-3.1-70b --seq 1M"},
                                         Case{"ulysses", "--model llama-3.1-70b --seq 128K --batch 16"},
                                         Case{"fsdp_gate_up", "--model llama-3.1-70b --seq 2M"},
                                         Case{"data_parallel", "--model llama-3.1-70b --seq 2M"}),
                         [](const testing::TestParamInfo<Case>& tested) { return tested.param.scope; });

TEST(Memory, NoWarningIfEverythingFits) {
  const Outcome table = run_program("commfuse-sim run --strategy serial,sliced");
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(table.out.find("ut of memory"), std::string::npos) << table.out;
}

TEST(Memory, CountsTheRowsThatDoNotFit) {
  const std::string axes =
      " --scope mlp --hardware l40s-pcie --ranks 4 --strategy serial --model llama-3.1-70b --axis seq=8K,1M";
  EXPECT_EQ(run_program("commfuse-sim run" + axes).out.rfind("Out of memory in 1 of 2 rows: a GPU needs", 0), 0U);
  const Outcome map = run_program("commfuse-sim run -o map" + axes + " --strategy serial,sliced");
  EXPECT_EQ(map.out.rfind("Out of memory in 2 of 4 rows: a GPU needs up to", 0), 0U) << map.out;
}

TEST(Memory, WarningIsTheFirstLineOfATrainingStep) {
  const Outcome table = run_program(
      "commfuse-sim run --scope step --model gpt-3-175b --hardware dgx-a100-x2 --pipeline 8 --batch 64 --seq 2K "
      "--strategy serial --micro-batch 8");
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_TRUE(begins(table.out)) << table.out;
  EXPECT_NE(first_sentence(table.out).find("has 80.00 GB per GPU, so use more GPUs, recomputation or a smaller"),
            std::string::npos)
      << table.out;
}

TEST(Memory, WarningIsTheFirstLineOfADecodingStep) {
  const Outcome table = run_program(
      "commfuse-sim run --scope decode --model llama-3.1-70b --hardware h100-sxm --ranks 2 --seq 128K --batch 8 "
      "--strategy serial");
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_TRUE(begins(table.out)) << table.out;
  EXPECT_NE(
      first_sentence(table.out).find("but h100-sxm has 80.00 GB per GPU, so use more tensor ranks, fewer sequences"),
      std::string::npos)
      << table.out;
}

// The model has 8 kv heads, so 16 tensor ranks hold copies of keys and values.
TEST(Memory, MoreTensorRanksAreNoRemedyForCopiedKeys) {
  const std::string decode =
      "commfuse-sim run --scope decode --model llama-3.1-70b --hardware dgx-h100-x4 --strategy serial --ranks 16 ";
  const json row = json::parse(run_program(decode + "--seq 128K --batch 64 -o json").out).front();
  EXPECT_GT(row.at("cache_gb").get<double>(), 80.0);
  EXPECT_NE(row.at("warnings").get<std::string>().find("so use fewer sequences or shorter ones; "), std::string::npos)
      << row;
  const std::string table = run_program(decode + "--seq 128K --batch 64").out;
  EXPECT_TRUE(first_sentence(table).ends_with("so use fewer sequences or shorter ones.")) << table;
  const std::string single = run_program(decode + "--seq 64M --batch 1").out;
  EXPECT_TRUE(first_sentence(single).ends_with("so use a shorter sequence.")) << single;
}

// 70.6 billion weights of 2 bytes on 2 GPUs; keys and values of 80 layers, 8 heads of 128, for 32K tokens.
TEST(Memory, CountsWeightsAndKeysOfAPrefill) {
  const std::string command =
      "commfuse-sim run --scope prefill --model llama-3.1-70b --hardware l40s-pcie --ranks 2 --seq 32K --batch 1 "
      "--strategy serial";
  const Outcome rows = run_program(command + " -o json");
  ASSERT_EQ(rows.code, 0) << rows.err;
  const json row = json::parse(rows.out).front();
  const std::string warning = row.at("warnings").get<std::string>();
  double needed = 0.0;
  ASSERT_EQ(std::sscanf(warning.c_str(), "out of memory: a GPU needs %lf GB", &needed), 1) << warning;
  EXPECT_NEAR(needed, 70.55e9 * 2 / 2 / 1e9 + 80.0 * 32768 * 2 * (8.0 * 128 / 2) * 2 / 1e9, 0.2);
  EXPECT_NEAR(row.at("weights_gb").get<double>() + row.at("cache_gb").get<double>(), needed, 0.005);
  EXPECT_FALSE(row.at("fits").get<bool>());
  const std::string table = run_program(command).out;
  EXPECT_EQ(first_sentence(table), "Out of memory" + warning.substr(13) + ".");
  EXPECT_NE(table.find(" of 48.0 GB, out of\n    memory"), std::string::npos) << table;
}

TEST(Memory, WarningIsFirstInSweepWhyAndReport) {
  const OwnFolder folder;
  const std::string settings =
      " --scope mlp --hardware l40s-pcie --ranks 4 --model llama-3.1-70b --seq 1M --strategy serial,sliced";
  std::ofstream("sweep.yaml") << "schema: commfuse.sweep/1\ntitle: memory\naxes:\n  - batch: [1]\n";
  const Outcome why = run_program(
      "commfuse-sim why --scope mlp --hardware l40s-pcie --ranks 4 --model llama-3.1-70b "
      "--seq 1M --strategy serial");
  EXPECT_TRUE(begins(why.out)) << why.out << why.err;
  const Outcome sweep = run_program("commfuse-sim sweep sweep.yaml --out sweep" + settings);
  ASSERT_EQ(sweep.code, 0) << sweep.err;
  EXPECT_TRUE(begins(sweep.out)) << sweep.out;
  const std::string page = contents_of("sweep/report.html");
  EXPECT_NE(page.find("<p class=\"lead\">Out of memory in 2 of 2 rows: a GPU needs up to"), std::string::npos);
}

}  // namespace
}  // namespace commfuse::test
