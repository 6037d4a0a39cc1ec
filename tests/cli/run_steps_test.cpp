// SPDX-License-Identifier: Apache-2.0
// Tests commfuse-sim run --scope step|prefill|decode as a person uses it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string gpt =
    "commfuse-sim run --scope step --model gpt-3-175b --hardware dgx-a100-x2 --dtype fp16 --pipeline 8 --batch 64 "
    "--seq 2K ";

TEST(CommfuseSimRunStep, PrintsTimeUtilizationAndMemoryOfAWholeModel) {
  const Outcome run = run_program(gpt + "--recompute full --strategy serial -o json");
  ASSERT_EQ(run.code, 0) << run.err;
  const json rows = json::parse(run.out);
  ASSERT_EQ(rows.size(), 1U);
  const json& row = rows.front();
  EXPECT_EQ(row.at("schema"), "commfuse.result/2");
  EXPECT_EQ(row.at("gpus"), 64);
  const double parts = row.at("compute_ms").get<double>() + row.at("waiting_ms").get<double>() +
                       row.at("gradients_ms").get<double>() + row.at("optimizer_ms").get<double>();
  EXPECT_NEAR(parts, row.at("time_ms").get<double>(), 1e-6);
  EXPECT_GT(row.at("hfu").get<double>(), row.at("mfu").get<double>());
  EXPECT_TRUE(row.at("fits").get<bool>());
}

TEST(CommfuseSimRunStep, OneOfANumberOfGpusIsSingular) {
  const auto answer = [](const std::string& flags) {
    return run_program("commfuse-sim run --model llama-3.1-8b --strategy serial " + flags).err;
  };
  EXPECT_EQ(answer("--scope step --gpus 8"),
            "note: 8 GPUs: 1 replica of 8 tensor ranks, batch 1 on 1 node of 8 (h100-sxm)\n");
  EXPECT_EQ(answer("--scope step --gpus 8 --axis batch=8,16"),
            "note: 8 GPUs: 1 replica of 8 tensor ranks on 1 node of 8 (h100-sxm)\n");
  EXPECT_EQ(answer("--gpus 1"), "note: 1 GPU: 1 tensor rank on 1 node of 8 (h100-sxm)\n");
  EXPECT_EQ(answer("--scope step --gpus 8 --data-parallel 2"),
            "--gpus: 8 GPUs are 1 replica of 8, not the 2 of --data-parallel; remove one\n");
  EXPECT_EQ(answer("--scope step --gpus 1 --pipeline 4"),
            "--gpus: 1 GPU is not a multiple of the 4 of one replica (tensor x pipeline x context x ulysses); choose a "
            "multiple, or fewer ranks\n");
  EXPECT_EQ(answer("--gpus 1 --ranks 8"),
            "--gpus: scope mlp has only tensor ranks, and 1 GPU is not the 8 of --ranks; remove one, or choose scope "
            "step\n");
  const OwnFolder folder;
  std::ofstream("one.yaml") << "schema: commfuse.hardware/1\nname: one\nextends: h100-sxm\ngpus_per_node: 1\n";
  EXPECT_EQ(answer("--gpus 2 --hardware ./one.yaml"),
            "--gpus: one has 1 GPU, not 2; set nodes: 2 in a cluster file of this machine\n");
}

TEST(CommfuseSimRunStep, ComparesStrategiesAndReportsInsufficientMemory) {
  const Outcome run = run_program(gpt + "--strategy serial,sliced --micro-batch 8");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("64 GPUs (8 tensor x 8 pipeline)"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("sliced"), std::string::npos);
  EXPECT_NE(run.out.find("out of memory"), std::string::npos);
}

TEST(CommfuseSimRunStep, TheTableShowsErrorsAndTheWinner) {
  const std::string command =
      "commfuse-sim run --scope step --model llama-3.1-8b --batch 8 --seq 8K --strategy "
      "serial,commfuse";
  const Outcome table = run_program(command);
  ASSERT_EQ(table.code, 0) << table.err;
  for (std::size_t start = 0, end = 0; (end = table.out.find('\n', start)) != std::string::npos; start = end + 1) {
    EXPECT_LE(end - start, 80U) << table.out.substr(start, end - start);
  }
  EXPECT_NE(table.out.find("\u00b1 vs serial"), std::string::npos) << table.out;
  EXPECT_TRUE(table.out.find(" wins (") != std::string::npos || table.out.find("Tie: ") != std::string::npos)
      << table.out;
  const json rows = json::parse(run_program(command + " -o json").out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_GT(rows[0].at("time_error").get<double>(), 0.001);
  EXPECT_LT(rows[0].at("time_error").get<double>(), 0.5);
  EXPECT_NEAR(rows[0].at("win_probability").get<double>() + rows[1].at("win_probability").get<double>(), 1.0, 1e-9);
  const Outcome off = run_program(command + " --uncertainty off");
  EXPECT_TRUE(off.out.find("probability unknown (--uncertainty off)") != std::string::npos ||
              off.out.find("Tie: ") != std::string::npos)
      << off.out;
}

TEST(CommfuseSimRunStep, PassesPromptsThroughAWholeModel) {
  const Outcome run =
      run_program("commfuse-sim run --scope prefill --seq 8K --strategy serial --axis ranks=2,4,8 -o csv");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 4);  // A header and three points.
}

TEST(CommfuseSimRunStep, DecodesATokenForEverySequenceOfABatch) {
  const Outcome run = run_program("commfuse-sim run --scope decode --seq 8K --batch 64 --launch graph -o json");
  ASSERT_EQ(run.code, 0) << run.err;
  const json rows = json::parse(run.out);
  ASSERT_GT(rows.size(), 2U);
  const json& plain = rows.front();
  EXPECT_EQ(plain.at("strategy"), "all_reduce");
  EXPECT_FALSE(plain.at("sequence_parallel").get<bool>());
  EXPECT_NEAR(64e3 / plain.at("time_ms").get<double>(), plain.at("tokens_per_second").get<double>(), 1e-6);
  // 80 layers, 64 x 8193 keys and values of one head of 128, two bytes each: 21.5 GB, in addition to an eighth of the
  // weights.
  EXPECT_NEAR(plain.at("cache_gb").get<double>(), 80.0 * 64 * 8193 * 2 * 128 * 2 / 1e9, 1e-9);
  EXPECT_NEAR(plain.at("weights_gb").get<double>(), 141.1 / 8, 0.1);
  EXPECT_TRUE(plain.at("fits").get<bool>());
  // Reading both once is a lower bound of the time.
  EXPECT_GT(plain.at("time_ms").get<double>(), 1e3 * (21.48 + 17.6) / 3350);
}

// The host issues the many small kernels more slowly than they run. Its time per kernel is 12 us, give or take 30%.
TEST(CommfuseSimRunStep, ADecodingStepThatTheHostLimitsIsAsUncertainAsTheHost) {
  const std::string command =
      "commfuse-sim run --scope decode --hardware h100-sxm --model llama-3.1-70b --batch 32 "
      "--seq 8K --strategy commfuse -o json";
  const auto error = [](const std::string& text) { return json::parse(text).at(1).at("time_error").get<double>(); };
  EXPECT_NEAR(error(run_program(command).out), std::hypot(std::log(1.3), 0.2), 0.01);  // 0.2: any decoding step
  EXPECT_NEAR(error(run_program(command + " --launch graph").out), 0.2, 0.01);
}

TEST(CommfuseSimRunStep, AGraphDoesNotSlowDecoding) {
  const auto time = [](const std::string& launch) {
    const Outcome outcome = run_program(
        "commfuse-sim run --scope decode --model llama-3.1-70b --ranks 8 --batch 1 --seq 4K -o json --launch " +
        launch);
    const std::string key = "\"time_ms\":";
    return std::stod(outcome.out.substr(outcome.out.find(key) + key.size()));  // The first row has strategy all_reduce.
  };
  EXPECT_LE(time("graph"), time("stream"));
}

TEST(CommfuseSimRunStep, AScheduleReportsThatItCannotCutTooFewTokens) {
  const Outcome run = run_program("commfuse-sim run --scope decode --seq 8K --batch 4");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("  all_reduce "), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("  serial          8 tensor ranks share the tokens of the batch, but it has 4;\n"),
            std::string::npos)
      << run.out;
  EXPECT_NE(run.out.find("memory of a GPU: weights 17.6 GB"), std::string::npos) << run.out;
}

TEST(CommfuseSimRunStep, AStrategyThatNobodyNamedMayLackASchedule) {
  for (const std::string work : {"prefill --batch 1", "step --batch 8"}) {
    const std::string point =
        "commfuse-sim run --model llama-3.1-8b --ranks 8 --seq 4104 --uncertainty off -o json --scope " + work;
    const Outcome run = run_program(point);
    ASSERT_EQ(run.code, 0) << run.err;
    const json rows = json::parse(run.out);
    EXPECT_EQ(rows.at(0).at("strategy"), "serial");
    EXPECT_EQ(rows.at(1).at("strategy"), "sliced");
    EXPECT_EQ(rows.at(1).at("reason").get<std::string>().find("4104 tokens cannot be cut into 16 equal blocks"), 0U);
    const Outcome named = run_program(point + " --strategy serial,sliced");
    EXPECT_EQ(named.code, 2);
    EXPECT_EQ(named.err.find("4104 tokens cannot be cut into 16 equal blocks, as sliced (k=2) qkv requires"), 0U);
  }
}

class CommfuseSimSweepStep : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("commfuse-cli-steps-" + std::to_string(getpid()) + "-" +
                                           ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] Outcome sweep(const std::string& body, const std::string& arguments = "") const {
    std::ofstream(path("a.yaml")) << "schema: commfuse.sweep/1\n" << body;
    return run_program("commfuse-sim sweep " + path("a.yaml") + " --out " + path("out") + " " + arguments);
  }

 private:
  fs::path folder_;
};

TEST_F(CommfuseSimSweepStep, VariesAPlanAndReportsImpossiblePlans) {
  const Outcome outcome = sweep(
      "set: {scope: step, model: llama-3.1-8b, batch: 8, seq: 4K, strategy: {name: serial}}\n"
      "axes:\n  - ranks: [2, 4]\n  - parallel.pipeline: [1, 2, 4]\nconstraints:\n  - ranks*parallel.pipeline <= 16\n",
      "-o csv");
  EXPECT_EQ(outcome.code, 3) << outcome.err;  // One node has fewer than 4 x 4 GPUs.
  EXPECT_NE(contents_of(path("out/report.html")).find("<h2 id=\"models\">Whole models</h2>"), std::string::npos);
  EXPECT_EQ(contents_of(path("out/results.csv")), outcome.out);
  const json rows = json::parse(contents_of(path("out/results.json")));
  ASSERT_EQ(rows.size(), 6U);
  for (const json& row : rows) {
    const bool fits_the_node = row.at("tensor").get<int>() * row.at("pipeline").get<int>() <= 8;
    EXPECT_EQ(row.contains("time_ms"), fits_the_node) << row;
    EXPECT_EQ(row.contains("reason"), !fits_the_node) << row;
  }
  EXPECT_NE(rows.back().at("reason").get<std::string>().find("h100-sxm is one node of 8"), std::string::npos);
}

TEST_F(CommfuseSimSweepStep, AgreesWithRunPointByPoint) {
  ASSERT_EQ(sweep("set: {scope: prefill, model: llama-3.1-8b}\naxes:\n  - ranks: [2, 4]\n").code, 0);
  const Outcome run = run_program("commfuse-sim run --scope prefill --model llama-3.1-8b --axis ranks=2,4 -o json");
  EXPECT_EQ(contents_of(path("out/results.json")), run.out);
}

TEST_F(CommfuseSimSweepStep, ReportsEveryPointWithASettingThatOnlyLayersHave) {
  const Outcome outcome = sweep(
      "set: {scope: step, model: llama-3.1-8b, ranks: 2, strategy: {name: serial}}\n"
      "axes:\n  - interference: [static, none]\n",
      "-o json");
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  const json rows = json::parse(outcome.out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_TRUE(rows.front().contains("time_ms"));
  EXPECT_NE(rows.back().at("reason").get<std::string>().find("scope step does not support 'interference'"),
            std::string::npos);
}

TEST_F(CommfuseSimSweepStep, RefusesLayersAndWholeModelsInOneGrid) {
  const Outcome outcome = sweep("axes:\n  - scope: [mlp, step]\n");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("scope mlp cannot be combined with whole models; run them separately"), std::string::npos)
      << outcome.err;
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(CommfuseSimSweepStep, ComparesImplementationsPointByPoint) {
  const Outcome outcome = sweep(
      "set: {scope: prefill, model: llama-3.1-8b, seq: 8K, strategy: {name: serial}, as: te}\n"
      "axes:\n  - ranks: [1, 8]\n");
  EXPECT_EQ(outcome.code, 3) << outcome.err;  // One rank has no collective that te could overlap.
  const json rows = json::parse(contents_of(path("out/results.json")));
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_NE(rows[1].at("reason").get<std::string>().find("choose more --ranks"), std::string::npos) << rows[1];
  EXPECT_EQ(rows[3].at("strategy"), "te");
  EXPECT_EQ(rows[3].at("implements"), "ring_exchange");
  EXPECT_TRUE(rows[3].contains("beats_serial")) << rows[3];
}

constexpr const char* implemented_step =
    "commfuse-sim run --scope step --model llama-3.1-8b --ranks 8 --batch 8 --seq 8K --strategy serial,commfuse ";

TEST(CommfuseSimRunStep, SaysFirstWhetherOverlapWithImplementationsPays) {
  const Outcome table = run_program(std::string(implemented_step) + "--as te,flux");
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(table.err, "");
  EXPECT_NE(table.out.find("\n  commfuse (ideal) "), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("\n  Forward GEMMs that take less time with an implementation: te "), std::string::npos)
      << table.out;
  const Outcome verdict = run_program(std::string(implemented_step) + "--as te,flux -o verdict");
  EXPECT_TRUE(verdict.out.starts_with("Overlap pays: ") || verdict.out.starts_with("Too close to call: "))
      << verdict.out;
  EXPECT_NE(verdict.out.find(" time than serial (90% interval "), std::string::npos) << verdict.out;
  EXPECT_NE(verdict.out.find("Ideal"), std::string::npos) << verdict.out;
}

TEST(CommfuseSimRunStep, NamesImplementationsThatNobodyMeasuredThere) {
  const Outcome table = run_program(std::string(implemented_step) + "--as te --hardware b200-sxm");
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(table.err, "");
  EXPECT_NE(table.out.find("\n  Beyond the fit: te was not measured on GPUs such as B200 SXM.\n"), std::string::npos)
      << table.out;
}

TEST(CommfuseSimRunStep, RefusesAnImplementationThatRunsNothing) {
  const Outcome refused = run_program(std::string(implemented_step) + "--as flux --hardware b200-sxm");
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err, "flux does not run on b200-sxm; it is for ampere, hopper\n");
  const Outcome none = run_program("commfuse-sim run --scope prefill --model llama-3.1-8b --ranks 1 --as all");
  EXPECT_EQ(none.code, 0);
  EXPECT_EQ(none.err,
            "--as all: at some points no implementation runs a GEMM; only ideal schedules are compared there\n");
}

TEST(CommfuseSimRunStep, ComparesPipelineSchedules) {
  const std::string command =
      "commfuse-sim run --scope step --model gpt-3-175b --hardware dgx-h100-x2 --pipeline 8 --batch 16 --seq 2K "
      "--strategy serial --axis parallel.schedule=1f1b,zero_bubble";
  const Outcome outcome = run_program(command);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("(8 tensor x 8 pipeline, zero_bubble)"), std::string::npos) << outcome.out;
  const json rows = json::parse(run_program(command + " -o json").out);
  EXPECT_EQ(rows.at(0).at("pipeline_schedule"), "1f1b");
  EXPECT_LT(rows.at(1).at("waiting_ms"), rows.at(0).at("waiting_ms"));
  EXPECT_EQ(run_program("commfuse-sim run --scope step --pipeline-schedule zero_bubble").err,
            "schedule zero_bubble needs several stages with one chunk each, but pipeline is 1; choose 1f1b\n");
}

TEST(CommfuseSimRunStep, SplitsASequenceAsUlyssesDoes) {
  const Outcome run = run_program(
      "commfuse-sim run --scope step --model llama-3.1-8b --hardware h100-sxm --ranks 1 --ulysses 8 --seq 64K -o json");
  ASSERT_EQ(run.code, 0) << run.err;
  const json rows = json::parse(run.out);
  ASSERT_GT(rows.size(), 1U);  // The attention block has schedules.
  EXPECT_EQ(rows.front().at("gpus"), 8);
  EXPECT_EQ(rows.front().at("ulysses"), 8);
  const Outcome few = run_program(
      "commfuse-sim run --scope step --model llama-3.1-8b --hardware dgx-h100-x2 --ranks 2 --ulysses 8 --seq 64K");
  EXPECT_EQ(few.code, 2);
  EXPECT_EQ(
      few.err,
      "the number of kv heads 8 is not a multiple of tensor parallelism x ulysses 16; choose fewer ulysses ranks, or "
      "context ranks instead\n");
  EXPECT_EQ(run_program("commfuse-sim run --scope decode --ulysses 2 --seq 8K").err,
            "scope decode has one token per sequence, which ulysses cannot share; set it to 1\n");
}

TEST(CommfuseSimRunStep, TrainsPrefillsAndDecodesAHybrid) {
  for (const char* scope : {"step", "prefill", "decode"}) {
    const Outcome run = run_program(std::string("commfuse-sim run --model nemotron-h-8b --ranks 8 --batch 8 --scope ") +
                                    scope + " -o json");
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_GT(json::parse(run.out).front().at("mfu").get<double>(), 0.0) << scope;
  }
}

TEST(CommfuseSimRunStep, DecodesFromNarrowOrWideKeysOfLatentAttention) {
  const std::string command =
      "commfuse-sim run --scope decode --model deepseek-v3 --ranks 8 --batch 8 --seq 4K -o json ";
  const json narrow = json::parse(run_program(command).out).front();
  const json wide = json::parse(run_program(command + "--latent-decode naive").out).front();
  // 61 layers have 8 x 4097 keys of 576 elements, or of 320 for each of 16 heads, two bytes each.
  EXPECT_NEAR(narrow.at("cache_gb").get<double>(), 61e-9 * 8 * 4097 * 576 * 2, 1e-9);
  EXPECT_NEAR(wide.at("cache_gb").get<double>(), 61e-9 * 8 * 4097 * 320 * 16 * 2, 1e-9);
}

TEST(CommfuseSimRunStep, RefusesSettingsThatOnlyTheScheduleOfALayerHas) {
  struct Ignored {
    const char* argument;
    const char* message;
  };
  for (const Ignored& ignored :
       {Ignored{"--interference none",
                "--interference: scope step does not support 'interference'; remove it, or choose a layer's scope\n"},
        Ignored{"--set evaluator=engine", "--set evaluator=engine: scope step does not support 'evaluator';"},
        Ignored{"--symmetry off", "--symmetry: scope step does not support 'symmetry';"}}) {
    const Outcome run = run_program(std::string("commfuse-sim run --scope step ") + ignored.argument);
    EXPECT_EQ(run.code, 2) << ignored.argument;
    EXPECT_EQ(run.err.rfind(ignored.message, 0), 0U) << run.err;
    EXPECT_EQ(run.out, "");
  }
  for (const std::string scope : {"prefill", "decode"}) {
    const Outcome run = run_program("commfuse-sim run --ranks 1 --interference none --scope " + scope);
    EXPECT_EQ(run.code, 2);
    EXPECT_NE(run.err.find("scope " + scope + " does not support 'interference'"), std::string::npos) << run.err;
  }
}

TEST(CommfuseSimRunStep, RefusesTrainingSettingsForInference) {
  for (const std::string scope : {"prefill", "decode"}) {
    for (const std::string setting : {"--zero 1", "--micro-batch 2", "--recompute full", "--optimizer sgd"}) {
      const Outcome run = run_program(fmt::format("commfuse-sim run --scope {} {}", scope, setting));
      EXPECT_EQ(run.code, 2) << scope << " " << setting;
      const std::string flag = setting.substr(0, setting.find(' '));
      EXPECT_EQ(run.err.rfind(fmt::format("{}: scope {} does not support ", flag, scope), 0), 0U) << run.err;
    }
  }
  EXPECT_EQ(
      run_program("commfuse-sim run --scope prefill --latent-decode naive").err,
      "--latent-decode: scope prefill does not support 'step.latent_decode'; remove it, or choose scope decode\n");
}

TEST(CommfuseSimRunStep, InferenceUnderJitterHasPercentiles) {
  for (const std::string scope : {"prefill", "decode"}) {
    const std::string command =
        "commfuse-sim run --ranks 8 --batch 8 --seq 1K --strategy serial --launch graph --scope " + scope;
    const Outcome run = run_program(command + " --jitter default -o json");
    EXPECT_EQ(run.code, 0);
    EXPECT_EQ(run.err, "");
    const json without = json::parse(run_program(command + " -o json").out);
    const json rows = json::parse(run.out);
    ASSERT_EQ(rows.size(), without.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const json& row = rows[i];
      EXPECT_FALSE(without[i].contains("time_p99_ms"));
      EXPECT_GT(row.at("time_ms"), without[i].at("time_ms"));
      EXPECT_LT(row.at("time_p50_ms"), row.at("time_p95_ms"));
      EXPECT_LT(row.at("time_p95_ms"), row.at("time_p99_ms"));
      EXPECT_LT(row.at("time_p99_ms"), row.at("time_p99_9_ms"));
      EXPECT_LT(row.at("time_p50_ms"), row.at("time_ms").get<double>() * 1.01);
    }
    const std::string table = run_program(command + " --jitter default").out;
    EXPECT_NE(table.find("\n  p50, p95, p99 and p99.9 over machines whose GPUs differ in speed: "), std::string::npos)
        << table;
  }
}

TEST(CommfuseSimRunStep, InferenceWithAPriceHasACostPerToken) {
  for (const std::string scope : {"prefill", "decode"}) {
    const std::string command =
        "commfuse-sim run --model llama-3.1-8b --ranks 2 --batch 8 --seq 1K --strategy serial --price 3.60 --scope " +
        scope;
    for (const json& row : json::parse(run_program(command + " -o json").out)) {
      // Two GPUs at 3.60 an hour cost 0.002 a second.
      EXPECT_NEAR(row.at("cost_per_mtok").get<double>() * row.at("tokens_per_second").get<double>(), 2000.0, 1e-6);
      EXPECT_EQ(row.at("price"), 3.6);
    }
    const std::string table = run_program(command).out;
    const std::string tokens = scope == "decode" ? "generated" : "prompt";
    EXPECT_NE(table.find("\n  cost of a million " + tokens + " tokens at 3.60 per GPU-hour: "), std::string::npos)
        << table;
  }
  EXPECT_EQ(run_program("commfuse-sim run --scope step --model llama-3.1-8b --batch 8 --price 2.80").err,
            "--price: scope step does not support 'price'; remove it, or choose scope prefill or decode\n");
  EXPECT_EQ(run_program("commfuse-sim run --scope decode --price cheap").err,
            "--price: 'cheap' is not a number; write one, such as 2.80\n");
}

TEST(CommfuseSimRunStep, AQueryFindsTheCheapestReplicaWithinALatency) {
  const OwnFolder folder;
  const Outcome run = run_program(
      "commfuse-sim run --scope decode --model llama-3.1-8b --hardware h100-sxm --seq 8K --axis ranks=1,2 --axis "
      "batch=8..128 --launch graph --strategy serial --jitter default --price 2.80 -o json");
  std::ofstream("rows.json") << run.out;
  constexpr double limit_ms = 12.0;
  std::optional<json> cheapest;
  double slowest_ms = 0.0;
  for (const json& row : json::parse(run.out)) {
    slowest_ms = std::max(slowest_ms, row.at("time_p99_ms").get<double>());
    const bool is_allowed = row.at("fits").get<bool>() && row.at("time_p99_ms").get<double>() <= limit_ms;
    if (is_allowed && (!cheapest || row.at("cost_per_mtok") < cheapest->at("cost_per_mtok"))) {
      cheapest = row;
    }
  }
  ASSERT_TRUE(cheapest);
  EXPECT_GT(slowest_ms, limit_ms);  // The limit excludes some rows.
  const json best = json::parse(
      run_program("commfuse-sim best rows.json --where 'time_p99_ms <= 12 AND fits' --by cost_per_mtok --per model "
                  "--columns tensor,batch,strategy,time_p99_ms,cost_per_mtok -o json")
          .out);
  ASSERT_EQ(best.size(), 1U);
  for (const auto& [name, value] : best[0].items()) {
    EXPECT_EQ(value, cheapest->at(name)) << name;
  }
  const auto shows_cost = [](const std::string& flags) {
    return run_program("commfuse-sim best rows.json --per model" + flags).out.find("cost_per_mtok") !=
           std::string::npos;
  };
  EXPECT_TRUE(shows_cost(" --by cost_per_mtok"));
  EXPECT_TRUE(shows_cost(" --by -cost_per_mtok"));
  EXPECT_FALSE(shows_cost(""));
}

TEST(CommfuseSimRunStep, TheMapOfInferenceHasNoSettingsOfTraining) {
  const auto map_of = [](const std::string& scope) {
    return run_program(
               "commfuse-sim run --model llama-3.1-8b --ranks 8 --batch 8 --axis seq=1K,2K --strategy "
               "serial,commfuse -o map --scope " +
               scope)
        .out;
  };
  EXPECT_TRUE(map_of("prefill").starts_with("llama-3.1-8b prefill on h100-sxm, batch 8, bf16, ranks 8\n"));
  EXPECT_TRUE(map_of("decode").starts_with("llama-3.1-8b decode on h100-sxm, batch 8, bf16, ranks 8\n"));
  EXPECT_TRUE(map_of("step").starts_with(
      "llama-3.1-8b step on h100-sxm, zero 0, micro-batch 1, recompute none, batch 8,\n  bf16, ranks 8\n"));
}

TEST(CommfuseSimRunStep, AcceptsSettingsOfLayersAtTheirDefaults) {
  const std::string step = "commfuse-sim run --scope step --model llama-3.1-8b --strategy serial -o csv";
  const Outcome run = run_program(step + " --interference static --attention-kernel fused --evaluator auto");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, run_program(step).out);
}

TEST(CommfuseSimRunStep, RefusesAScheduleSettingOfADecodingStepOfOneRankToo) {
  EXPECT_EQ(run_program("commfuse-sim run --scope decode --ranks 1 --slices 4").err,
            "--slices: scope decode does not support 'strategy.slices'; remove it, or choose a layer's scope\n");
}

TEST(CommfuseSimRunStep, NamesTheTwoSettingsThatClash) {
  struct Mistake {
    std::string arguments;
    const char* message;
  };
  for (const Mistake& mistake :
       {Mistake{
            gpt + "--ranks 64 --batch 64",
            "the number of heads 96 is not a multiple of tensor parallelism 64; choose tensor ranks that divide it"},
        Mistake{gpt + "--data-parallel 3",
                "global batch 64 is not a multiple of data parallelism x micro-batch 3; choose a multiple of it"},
        Mistake{"commfuse-sim run --scope decode --context 2", "scope decode has one token per sequence"},
        Mistake{"commfuse-sim run --scope decode --seq 512M --batch 512M",
                "batch 512M times seq 512M is too large; the limit is 1G tokens\n"},
        Mistake{"commfuse-sim run --scope prefill --seq 1G --batch 1G",
                "batch 1G times seq 1G is too large; the limit is 1G tokens\n"},
        Mistake{"commfuse-sim run --model deepseek-v3 --scope decode --seq 1G --batch 1M --latent-decode naive",
                "batch 1M times seq 1G is too large; the limit is 1G tokens\n"},
        Mistake{"commfuse-sim run --scope step --seq 4K --batch 32M",
                "the whole model would take more than 2e+06 s; choose a smaller batch or sequence, or more GPUs\n"},
        Mistake{"commfuse-sim run --scope step --hardware dgx-h100-x2 --ranks 1M --pipeline 1K --data-parallel 1M "
                "--context 1K --ulysses 1K",
                "tensor x pipeline x data x context x ulysses is more than 1073741824 GPUs; choose fewer\n"},
        Mistake{gpt + "--slices 4", "does not support 'strategy.slices'"},
        Mistake{"commfuse-sim run --scope step --pipeline 4 --batch 4",
                "tensor x pipeline x data x context is 32 GPUs, and h100-sxm is one node of 8; choose a cluster"},
        Mistake{"commfuse-sim run --scope step --faults slow-rank",
                "--faults: scope step does not support 'faults'; remove it, or choose a layer's scope\n"},
        Mistake{"commfuse-sim run --scope prefill --faults slow-rank",
                "--faults: scope prefill does not support 'faults'"},
        Mistake{"commfuse-sim run --scope decode --faults late-start",
                "--faults: scope decode does not support 'faults'"},
        Mistake{"commfuse-sim run --scope decode --batch 64 --as te", "--as: scope decode does not support 'as'"},
        Mistake{"commfuse-sim run --scope mlp --pipeline 4", "scope mlp does not support 'parallel.pipeline'"},
        Mistake{gpt + "--trace t.json", "--trace: not available for scopes step, prefill and decode; remove it"}}) {
    const Outcome run = run_program(mistake.arguments);
    EXPECT_EQ(run.code, 2) << mistake.arguments;
    EXPECT_NE(run.err.find(mistake.message), std::string::npos) << run.err;
  }
}

TEST(CommfuseSimRunStep, AMeasuredStepIsShownAndCorrectsTheTable) {
  const std::string step =
      "commfuse-sim run --scope step --model llama-3.1-8b --hardware h100-sxm --ranks 2 --data-parallel 4 --batch 16 "
      "--framework torchtitan --strategy serial";
  const Outcome corrected = run_program(step + " --measured-step 5s");
  ASSERT_EQ(corrected.code, 0) << corrected.err;
  EXPECT_TRUE(corrected.out.starts_with("Measured 5000.0 ms, predicted ")) << corrected.out;
  const Outcome as_json = run_program(step + " --measured-step 5s -o json");
  EXPECT_NE(as_json.out.find("\"correction\":"), std::string::npos) << as_json.out;
  EXPECT_EQ(run_program(step + " -o json").out.find("\"correction\""), std::string::npos);
  EXPECT_EQ(run_program(step + " --measured-step soon").err,
            "--measured-step: 'soon' is not a time above 0; write one with its unit, such as 4.2s\n");
  EXPECT_EQ(run_program(step + " --axis seq=4K,8K --measured-step 5s").err,
            "--measured-step: the measured settings are unknown; name their file with --measured-config\n");
  EXPECT_EQ(run_program(step + " --measured-config mine.yaml").err,
            "--measured-config requires --measured-step; add the time, such as 4.2s\n");
  EXPECT_EQ(run_program(step + " --axis jitter=none,default --measured-step 5s --measured-config mine.yaml").err,
            "--measured-step: the points differ in jitter; choose one --jitter\n");
  EXPECT_EQ(run_program("commfuse-sim run --measured-step 5s").err,
            "--measured-step: applies to training steps only; choose --scope step, or remove --measured-step\n");
}

}  // namespace
}  // namespace commfuse::test
