// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/own_folder.h"
#include "tests/texts.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Returns the number of UTF-8 characters.
std::ptrdiff_t characters_in(const std::string& line) {
  return std::ranges::count_if(line, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; });
}

TEST(CommfuseSimTune, PlansALargeModelOnAClusterInEightyColumns) {
  const Outcome outcome =
      run_program("commfuse-sim tune --model llama-3.1-405b --cluster dgx-h100 --gpus 1024 --seq 8192");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\n>   "), std::string::npos);
  EXPECT_NE(outcome.out.find("--tensor-model-parallel-size"), std::string::npos);
  EXPECT_NE(in_one_line(outcome.out)
                .find("(TransformerEngine's methods in forward passes are chosen by the prices of its kernels. Change "
                      "against serial: qkv_fprop ring_exchange -"),
            std::string::npos)
      << outcome.out;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(characters_in(line), 80) << line;
  }
}

TEST(CommfuseSimTune, ALongHeadingIsWrapped) {
  const Outcome outcome = run_program(
      "commfuse-sim tune --model llama-3.1-8b --cluster dgx-h100 --gpus 16 --batch 64 --link-bandwidth 450GB/s "
      "--network-bandwidth 12.5GB/s");
  const std::string heading =
      "llama-3.1-8b on 16 GPUs of dgx-h100-x2, links 450GB/s, network 12.5GB/s, batch\n"
      "64 (256K tokens), seq 4K, bf16\n8.03B parameters\n";
  EXPECT_EQ(outcome.out.substr(0, heading.size()), heading) << outcome.err;
  const std::string single = "llama-3.1-8b on 1 GPU of h100-sxm, batch 8 (32K tokens), seq 4K, bf16\n";
  EXPECT_EQ(run_program("commfuse-sim tune --model llama-3.1-8b --hardware h100-sxm --gpus 1 --batch 8")
                .out.substr(0, single.size()),
            single);
}

TEST(CommfuseSimTune, PrintsTheExpertRanksOfAMixtureInEightyColumns) {
  const std::string mixture = "commfuse-sim tune --model mixtral-8x7b --cluster dgx-h100 --gpus 32 --expert-parallel 4";
  const Outcome outcome = run_program(mixture);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(
      outcome.out.find("\n   TP  PP  VPP  CP    DP  EP ZeRO micro recompute    time/ms     \u00b1    MFU mem/GB\n>"),
      std::string::npos)
      << outcome.out;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(characters_in(line), 80) << line;
  }
  const Outcome dense = run_program("commfuse-sim tune --model llama-3.1-8b --hardware h100-sxm --seq 8K --batch 8");
  EXPECT_EQ(dense.out.find(" EP "), std::string::npos) << dense.out;
}

std::string megatron_arguments_of(const std::string& request) {
  const Outcome outcome = run_program("commfuse-sim tune " + request + " -o json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.code == 0 ? json::parse(outcome.out).at("megatron").get<std::string>() : std::string{};
}

TEST(CommfuseSimTune, MegatronCountsEmbeddingAndLossAsLayersOfUnevenStages) {
  const std::string model = "--model llama-3.1-405b --cluster dgx-h100 --gpus 1024 --seq 8K ";
  const std::string flags = " --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split ";
  EXPECT_NE(megatron_arguments_of(model + "--pipeline 16").find(flags), std::string::npos);  // 126 + 2 layers.
  const std::string even = "--model llama-3.1-70b --cluster dgx-h100 --gpus 64 --seq 8K --ranks 8 --pipeline 4";
  EXPECT_EQ(megatron_arguments_of(even).find(flags), std::string::npos);  // 80 layers.
}

TEST(CommfuseSimTune, MegatronUsesItsOwnFsdpWhereReplicasShareWeights) {
  const std::string arguments =
      megatron_arguments_of("--model mixtral-8x7b --cluster dgx-h100 --gpus 64 --zero 3 --expert-parallel 8");
  EXPECT_NE(arguments.find("--expert-model-parallel-size 8"), std::string::npos) << arguments;
  EXPECT_NE(arguments.find("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params "
                           "--use-distributed-optimizer --no-gradient-accumulation-fusion"),
            std::string::npos)
      << arguments;
  EXPECT_EQ(arguments.find("--overlap-grad-reduce"), std::string::npos) << arguments;
}

TEST(CommfuseSimTune, MegatronUsesItsOwnFsdpWhereReplicasShareGradients) {
  const std::string arguments =
      megatron_arguments_of("--model llama-3.1-8b --hardware h100-sxm --batch 64 --zero 2 --optimizer sgd");
  EXPECT_NE(arguments.find(" --optimizer sgd --overlap-grad-reduce --overlap-param-gather --use-megatron-fsdp "
                           "--data-parallel-sharding-strategy optim_grads --use-distributed-optimizer "
                           "--no-gradient-accumulation-fusion "),
            std::string::npos)
      << arguments;
}

TEST(CommfuseSimTune, MegatronFlagsContainEveryPricedSetting) {
  const std::string step = "--model llama-3.1-8b --cluster dgx-h100 --gpus 16 --ranks 2 --pipeline 1 --seq 8K ";
  const std::string usual = megatron_arguments_of(step);
  EXPECT_NE(usual.find(" --bf16 --sequence-parallel --tp-comm-overlap --use-distributed-optimizer "
                       "--overlap-grad-reduce --overlap-param-gather"),
            std::string::npos)
      << usual;
  EXPECT_TRUE(usual.ends_with(" --attention-dropout 0 --hidden-dropout 0")) << usual;
  const std::string other = megatron_arguments_of(
      step + "--dropout on --attention-kernel unfused --recompute selective --overlap-gradients off --dtype fp16");
  EXPECT_NE(other.find(" --fp16 --accumulate-allreduce-grads-in-fp32 "), std::string::npos) << other;
  EXPECT_EQ(other.find("--overlap-grad-reduce"), std::string::npos) << other;
  EXPECT_TRUE(other.ends_with(" --recompute-granularity selective --attention-backend unfused")) << other;
}

TEST(CommfuseSimTune, MegatronRecomputesTheModulesThatItHasOfAFrameworksSelection) {
  const std::string titan =
      "--cluster dgx-h100 --gpus 16 --ranks 8 --seq 8K --framework torchtitan --recompute selective";
  const std::string dense = megatron_arguments_of("--model llama-3.1-8b " + titan);
  EXPECT_NE(dense.find(" --recompute-granularity selective --recompute-modules layernorm "), std::string::npos)
      << dense;
  const std::string mixture = megatron_arguments_of("--model mixtral-8x7b " + titan);
  EXPECT_NE(mixture.find(" --recompute-modules layernorm moe_act "), std::string::npos) << mixture;
  const Outcome text = run_program("commfuse-sim tune --model llama-3.1-8b " + titan);
  EXPECT_NE(
      text.out.find("\n  (Megatron-LM recomputes whole modules, not every second GEMM: these\n  recompute less)\n"),
      std::string::npos)
      << text.out;
}

TEST(CommfuseSimTune, AFrameworkIsTheBaselineOfTheGain) {
  const std::string step = "commfuse-sim tune --model llama-3.1-8b --hardware h100-sxm --seq 8K --batch 8 --ranks 8 ";
  Outcome table = run_program(step + "--framework torchtitan");
  ASSERT_EQ(table.code, 0) << table.err;
  std::ranges::replace(table.out, '\n', ' ');
  EXPECT_NE(table.out.find("% less than with torchtitan's own schedules ("), std::string::npos) << table.out;
  const json result = json::parse(run_program(step + "--framework torchtitan -o json").out);
  EXPECT_EQ(result.at("framework"), "torchtitan");
  EXPECT_GT(result.at("baseline").at("time_ms"), result.at("best").at(0).at("time_ms"));
  const json without = json::parse(run_program(step + "-o json").out);
  EXPECT_TRUE(without.at("framework").is_null());
  EXPECT_FALSE(without.contains("baseline"));
}

// With torchtitan's own schedules, eight replicas that share no GEMM are faster than the plan with the least memory.
TEST(CommfuseSimTune, ComparesTheFirstPlanWithTheFastestLayoutOfTheFramework) {
  const std::string command =
      "commfuse-sim tune --model llama-3.1-8b --hardware h100-sxm --seq 8K --batch 64 --framework torchtitan";
  Outcome table = run_program(command);
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("\nMegatron-LM's arguments for this layout, not torchtitan's\n"), std::string::npos);
  std::ranges::replace(table.out, '\n', ' ');
  EXPECT_NE(
      table.out.find(" The fastest layout with torchtitan's own schedules is TP 1, DP 8, ZeRO 3, micro-batch 1: "),
      std::string::npos)
      << table.out;
  EXPECT_NE(table.out.find("% more. Parts of the step"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("% longer than the fastest. "), std::string::npos) << table.out;
  EXPECT_NE(table.out.find(" With free collectives of tensor ranks, and all other communication as it is, it would "
                           "take at least "),
            std::string::npos)
      << table.out;
  const json result = json::parse(run_program(command + " -o json").out);
  EXPECT_EQ(result.at("fastest_baseline").at("tensor"), 1);
  EXPECT_LT(result.at("fastest_baseline").at("time_ms"), result.at("best").at(0).at("time_ms"));
  EXPECT_LT(result.at("fastest_baseline").at("time_ms"), result.at("baseline").at("time_ms"));
}

TEST(CommfuseSimTune, StatesNoBoundWithoutCollectivesOfTensorRanks) {
  const Outcome tuned =
      run_program("commfuse-sim tune --model llama-3.1-8b --hardware h100-sxm --ranks 1 --seq 8K --batch 8");
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const std::string text = in_one_line(tuned.out);
  EXPECT_EQ(text.find("With free collectives"), std::string::npos) << tuned.out;
  EXPECT_EQ(text.find("less than with"), std::string::npos) << tuned.out;
  EXPECT_NE(text.find(" ms with every schedule, because there is nothing to overlap. "), std::string::npos)
      << tuned.out;
  EXPECT_NE(text.find("No GEMM of tensor ranks has a collective that a schedule could hide: there is one tensor rank."),
            std::string::npos)
      << tuned.out;
}

// A slow network: each hop of a ring over nodes waits for the NICs of one rank, and a gather uses those of all.
TEST(CommfuseSimTune, StatesWhatTheOtherExchangeOfKeysWouldChange) {
  const std::string command =
      "commfuse-sim tune --model llama-3.1-8b --hardware dgx-h100-x4 --ranks 2 --context 16 --micro-batch 8 --zero 1 "
      "--recompute none --batch 16 --seq 32K --network-bandwidth x0.1 ";
  const Outcome free = run_program(command);
  ASSERT_EQ(free.code, 0) << free.err;
  EXPECT_NE(in_one_line(free.out).find("Every plan exchanges the keys of context ranks by all_gather; with "
                                       "--context-exchange ring the first plan would take "),
            std::string::npos)
      << free.out;
  const json gather = json::parse(run_program(command + "-o json").out);
  const json ring = json::parse(run_program(command + "--context-exchange ring -o json").out);
  EXPECT_EQ(gather.at("other_exchange").at("context_exchange"), "ring");
  EXPECT_EQ(gather.at("other_exchange").at("time_ms"), ring.at("best").at(0).at("time_ms"));
  EXPECT_GT(ring.at("best").at(0).at("time_ms"), gather.at("best").at(0).at("time_ms"));
  EXPECT_FALSE(ring.contains("other_exchange")) << "the exchange was fixed";
}

TEST(CommfuseSimTune, OtherCommandsReadTheWrittenFiles) {
  const fs::path folder = fs::temp_directory_path() / ("commfuse-tune-" + std::to_string(getpid()));
  const std::string command =
      "commfuse-sim tune --model llama-3.1-8b --hardware h100-sxm --ranks 8 --seq 8K --batch 8 "
      "-o json --out " +
      folder.string();
  const Outcome tuned = run_program(command);
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const json result = json::parse(tuned.out);
  EXPECT_EQ(result.at("schema"), "commfuse.tune/1");
  const Outcome step = run_program("commfuse-sim run " + (folder / "plan.yaml").string() + " -o json");
  ASSERT_EQ(step.code, 0) << step.err;
  EXPECT_EQ(json::parse(step.out).at(0).at("time_ms"), result.at("single").at("time_ms"));
  for (const json& site : result.at("sites")) {
    const std::string file = (folder / ("site-" + site.at("site").get<std::string>() + ".yaml")).string();
    const Outcome run = run_program("commfuse-sim run " + file + " -o json");
    ASSERT_EQ(run.code, 0) << run.err;
    ASSERT_EQ(json::parse(run.out).size(), 1U);
    EXPECT_EQ(json::parse(run.out).at(0).at("strategy"), site.at("strategy"));
  }
  const std::string arguments = result.at("megatron").get<std::string>();
  EXPECT_NE(arguments.find("--tp-comm-overlap-cfg " + (folder / "tp_comm_overlap_cfg.yaml").string()),
            std::string::npos)
      << arguments;
  const std::string megatron = contents_of(folder / "tp_comm_overlap_cfg.yaml");
  EXPECT_NE(megatron.find("\nqkv_fprop: {method: ring_exchange, aggregate: "), std::string::npos) << megatron;
  EXPECT_NE(megatron.find("\nfc1_wgrad: {method: bulk, "), std::string::npos) << megatron;
  const std::string heading =
      "# For Megatron-LM's --tp-comm-overlap-cfg. Methods of forward passes (fprop) are chosen by the prices of\n"
      "# TransformerEngine's kernels; pipeline, the default of proj_fprop and fc2_fprop, has no published\n"
      "# times. Methods of backward passes (dgrad, wgrad) assume ideal kernels. To see the prices:\n"
      "#   commfuse-sim run --as te --strategy serial --model llama-3.1-8b --hardware h100-sxm --ranks 8 --seq ";
  EXPECT_EQ(megatron.substr(0, heading.size()), heading);
  const std::string priced = megatron.substr(megatron.find("commfuse-sim run"));
  const Outcome as_te = run_program(priced.substr(0, priced.find('\n')) + " -o json");
  ASSERT_EQ(as_te.code, 0) << as_te.err;
  EXPECT_EQ(json::parse(as_te.out).size(), 8U) << "serial and te at four scopes";
  EXPECT_EQ(run_program(command).code, 2);  // The command replaces no file.
  fs::remove_all(folder);
}

// With 8K tokens, only the largest GEMM hides the steps of TransformerEngine's ring.
TEST(CommfuseSimTune, SwitchesTransformerEngineOffWhereItsKernelsLose) {
  const OwnFolder folder;
  const std::string step = "commfuse-sim tune --model llama-3.1-8b --hardware h100-sxm --ranks 8 --micro-batch 1 ";
  const Outcome tuned = run_program(step + "--seq 8K --batch 8 --out tuned");
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const std::string text = in_one_line(tuned.out);
  EXPECT_NE(text.find(" --tp-comm-overlap --disable-tp-comm-overlap-rs --tp-comm-overlap-cfg tuned/"),
            std::string::npos)
      << tuned.out;
  EXPECT_NE(text.find(" qkv_fprop none (ring_exchange +"), std::string::npos) << tuned.out;
  EXPECT_NE(text.find(" Set tp_comm_overlap_disable_qkv of Megatron-Core. "), std::string::npos) << tuned.out;
  const std::string file = contents_of("tuned/tp_comm_overlap_cfg.yaml");
  EXPECT_NE(
      file.find("\n# qkv_fprop: no overlap (tp_comm_overlap_disable_qkv of Megatron-Core); ring_exchange would change "
                "its time by +"),
      std::string::npos)
      << file;
  EXPECT_NE(
      file.find("\n# fc2_fprop: no overlap (--disable-tp-comm-overlap-rs); ring_exchange would change its time by +"),
      std::string::npos)
      << file;
  EXPECT_NE(file.find("\nfc1_fprop: {method: ring_exchange, aggregate: "), std::string::npos) << file;
  const json result = json::parse(run_program(step + "--seq 1K --batch 8 -o json --out none").out);
  EXPECT_FALSE(fs::exists("none/tp_comm_overlap_cfg.yaml"));
  EXPECT_EQ(result.at("megatron").get<std::string>().find("--tp-comm-overlap"), std::string::npos) << result;
  ASSERT_EQ(result.at("tp_comm_overlap").size(), 4U);
  for (const json& gemm : result.at("tp_comm_overlap")) {
    EXPECT_EQ(gemm.at("method"), "none");
    EXPECT_EQ(gemm.at("prices"), "te");
    EXPECT_GT(gemm.at("overlapped_us"), gemm.at("serial_us"));
  }
}

TEST(CommfuseSimTune, SaysWhereTransformerEngineHasNoPrices) {
  const Outcome tuned =
      run_program("commfuse-sim tune --model llama-3.1-8b --hardware gaudi-3 --ranks 8 --seq 8K --batch 8");
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_NE(in_one_line(tuned.out).find(
                "(TransformerEngine's methods and the times above assume ideal kernels, because the prices of "
                "its kernels are unknown: te does not run on gaudi-3;"),
            std::string::npos)
      << tuned.out;
}

TEST(CommfuseSimTune, WrittenFilesNameTheMachineOfAUserFromAnyFolder) {
  const OwnFolder folder;
  fs::copy_file(fs::path(COMMFUSE_SOURCE_DIR) / "configs/hardware/h100-sxm.yaml", "ours.yaml");
  const Outcome tuned = run_program(
      "commfuse-sim tune --model llama-3.1-8b --hardware ./ours.yaml --ranks 8 --seq 8K --batch 8 --out tuned");
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  for (const char* file : {"tuned/plan.yaml", "tuned/site-qkv.yaml"}) {
    const Outcome run = run_program(std::string("commfuse-sim run ") + file);
    EXPECT_EQ(run.code, 0) << run.err;
  }
}

TEST(CommfuseSimTune, WrittenTextsQuoteWhatShellAndYamlWouldMisread) {
  const OwnFolder folder;
  std::string model = contents_of(COMMFUSE_SOURCE_DIR "/configs/models/nemotron-h-8b.yaml");
  const std::string name = "\nname: nemotron-h-8b\n";
  ASSERT_NE(model.find(name), std::string::npos);
  std::ofstream("ours.yaml") << model.replace(model.find(name), name.size(), "\nname: \"ours: #2\"\n");
  const Outcome tuned = run_program(
      "commfuse-sim tune --model ./ours.yaml --hardware h100-sxm --ranks 8 --pipeline 1 --seq 8K --batch 8 "
      "--link-bandwidth '450 GB/s' --out 'our plan'");
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_NE(in_one_line(tuned.out).find(" --tp-comm-overlap-cfg 'our plan/tp_comm_overlap_cfg.yaml' "),
            std::string::npos)
      << tuned.out;
  EXPECT_NE(contents_of("our plan/tp_comm_overlap_cfg.yaml").find(" --link-bandwidth '450 GB/s' "), std::string::npos);
  const Outcome run = run_program("commfuse-sim run 'our plan/site-mamba_in.yaml'");
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST(CommfuseSimTune, FilesOfAHybridHoldTheShapesOfItsProjections) {
  const fs::path folder = fs::temp_directory_path() / ("commfuse-tune-hybrid-" + std::to_string(getpid()));
  const Outcome tuned = run_program(
      "commfuse-sim tune --model nemotron-h-8b --hardware h100-sxm --ranks 8 --pipeline 1 --seq 8K --batch 8 -o json "
      "--out " +
      folder.string());
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  ASSERT_EQ(json::parse(tuned.out).at("sites").at(4).at("site"), "mamba_in");
  const Outcome run = run_program("commfuse-sim run " + (folder / "site-mamba_in.yaml").string() + " -o json");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(json::parse(run.out).at(0).at("strategy"), json::parse(tuned.out).at("sites").at(4).at("strategy"));
  fs::remove_all(folder);
}

TEST(CommfuseSimTune, NamesItsObjectiveAndTheCostOfTheAlternative) {
  const std::string command = "commfuse-sim tune --model llama-3.1-8b --hardware h100-sxm --ranks 8 --batch 8 ";
  EXPECT_NE(run_program(command).out.find("\nObjective: time of each site without jitter."), std::string::npos);
  const Outcome text = run_program(command + "--minimize p99");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("\nObjective: p99 of the step under jitter default, 10000 samples"), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("\nStep time over machines with random GPUs: mean "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("      the mean "), std::string::npos);
  const json result = json::parse(run_program(command + "--minimize mean --jitter default --samples 500 -o json").out);
  EXPECT_EQ(result.at("minimize"), "mean");
  EXPECT_EQ(result.at("samples"), 500);
  for (const json& site : result.at("sites")) {
    EXPECT_EQ(site.at("strategy"), site.at("sampled").at("by_mean").at("strategy"));
    EXPECT_LE(site.at("sampled").at("by_mean").at("mean_us"), site.at("sampled").at("by_p99").at("mean_us"));
  }
  EXPECT_LE(result.at("tail_of_other_choice").at("p99_ms"), result.at("tail").at("p99_ms"));
  EXPECT_EQ(run_program(command + "--minimize p99 --jitter none").err,
            "--minimize p99: --jitter none has no percentiles; choose another --jitter, or remove --jitter none\n");
  EXPECT_EQ(run_program(command + "--minimize median").code, 2);
}

TEST(CommfuseSimTune, NamesItsObjectiveWithoutSites) {
  const std::string command =
      "commfuse-sim tune --model llama-3.1-8b --hardware h100-sxm --ranks 1 --batch 64 --samples 100 ";
  EXPECT_NE(run_program(command + "--minimize p99")
                .out.find("\nObjective: p99 of the step under jitter default. The step has no sites.\n"),
            std::string::npos);
  EXPECT_NE(run_program(command + "--jitter default")
                .out.find("\nObjective: mean of the step under jitter default. The step has no sites.\n"),
            std::string::npos);
}

TEST(CommfuseSimTune, HelpShowsNoDefaultOfWhatItChooses) {
  const std::string help = run_program("commfuse-sim tune --help-all").out;
  for (const char* flag : {"--ranks COUNT ", "--batch COUNT ", "--zero COUNT ", "--recompute WORD "}) {
    EXPECT_NE(help.find(flag), std::string::npos) << flag << help;
  }
  EXPECT_NE(help.find("--seq COUNT=4K "), std::string::npos) << help;
  EXPECT_EQ(help.find("--latent-decode"), std::string::npos) << help;
}

TEST(CommfuseSimTune, RefusesSettingsThatWouldChangeNoPlan) {
  EXPECT_EQ(run_program("commfuse-sim tune --cluster dgx-h100 --hardware h100-sxm").err,
            "--cluster: --hardware names a machine too; remove one of them\n");
  EXPECT_EQ(run_program("commfuse-sim tune --cluster dgx-h10").err.rfind("--cluster: unknown hardware 'dgx-h10'", 0),
            0U);
  for (const std::string setting : {"interference=none", "launch=graph", "faults=slow-rank", "evaluator=engine",
                                    "symmetry=off", "strategy.slices=4"}) {
    const Outcome outcome = run_program("commfuse-sim tune --model llama-3.1-8b --set " + setting);
    EXPECT_EQ(outcome.code, 2) << setting;
    EXPECT_EQ(outcome.err,
              "--set " + setting + ": tune does not use '" + setting.substr(0, setting.find('=')) + "'; remove it\n");
  }
}

TEST(CommfuseSimTune, OutOfMemoryIsAResultAndAWrongCountIsAMistake) {
  const Outcome full = run_program("commfuse-sim tune --model llama-3.1-405b --hardware h100-sxm --batch 8");
  EXPECT_EQ(full.code, 3) << full.err;
  const json result =
      json::parse(run_program("commfuse-sim tune --model llama-3.1-405b --hardware h100-sxm --batch 8 -o json").out);
  const double needed = result.at("least_memory_gb");
  EXPECT_GT(needed, 405.9 * 18 / 8) << "weights, gradients and states of ZeRO 3 on eight GPUs";
  EXPECT_EQ(result.at("memory_limit_gb"), 72.0);
  const std::string advice = fmt::format(
      "Every plan is out of memory: the smallest layout needs {:.1f} GB per GPU, {:.2f} times the 72.0 GB that a plan "
      "may use. Use more GPUs, or GPUs with more memory",
      needed, needed / 72.0);
  EXPECT_NE(in_one_line(full.out).find(advice + "."), std::string::npos) << full.out;
  const std::string fixed =
      run_program("commfuse-sim tune --model llama-3.1-405b --hardware h100-sxm --batch 8 --micro-batch 1").out;
  EXPECT_NE(in_one_line(fixed).find("memory, or leave the settings of the layout free."), std::string::npos) << fixed;
  const Outcome wrong = run_program("commfuse-sim tune --gpus many");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("--gpus: 'many' is not a whole number from 1 to 1M"), std::string::npos) << wrong.err;
}

TEST(CommfuseSimTune, NamesTheNumberOfPartsOfAscendsOwnSlicing) {
  const std::string on_ascend =
      run_program("commfuse-sim tune --model llama-3.1-8b --hardware ascend-910b-mesh --gpus 8 --ranks 8 --seq 8192")
          .out;
  EXPECT_NE(on_ascend.find("Additional arguments of MindSpeed\n  --use-ascend-coc --coc-parallel-num "),
            std::string::npos)
      << on_ascend;
  const Outcome uncut = run_program(  // 1000 tokens cannot be cut into two slices of eight shards
      "commfuse-sim tune --model llama-3.1-8b --hardware ascend-910b-mesh --gpus 8 --ranks 8 --seq 1000 --batch 8 "
      "--micro-batch 1");
  EXPECT_EQ(uncut.code, 0) << uncut.err;
  EXPECT_EQ(uncut.out.find("MindSpeed"), std::string::npos) << uncut.out;
  const std::string elsewhere =
      run_program("commfuse-sim tune --model llama-3.1-8b --hardware h100-sxm --gpus 8 --seq 8192").out;
  EXPECT_EQ(elsewhere.find("MindSpeed"), std::string::npos);
}

}  // namespace
}  // namespace commfuse::test
