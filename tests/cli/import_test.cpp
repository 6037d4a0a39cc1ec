// SPDX-License-Identifier: Apache-2.0
// Tests the refusals of commfuse-sim import, and that the files that it writes can be run.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "sim/import/formats.h"
#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

TEST(Import, AMegatronCommandLineBecomesARunnableStep) {
  const OwnFolder folder;
  std::ofstream("train.sh")
      << "torchrun --nproc-per-node=8 --nnodes=2 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
         "--ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention "
         "--num-query-groups 8 --seq-length 8192 --swiglu --normalization RMSNorm "
         "--position-embedding-type rope --disable-bias-linear --vocab-size 128256 "
         "--untie-embeddings-and-output-weights --tensor-model-parallel-size 8 --sequence-parallel "
         "--tp-comm-overlap --bf16 --global-batch-size 64 --use-distributed-optimizer --overlap-grad-reduce";
  std::ofstream("cfg.yaml") << "qkv_fprop: {method: ring_exchange, aggregate: 0}\nfc1_fprop: {method: ring_exchange}\n";
  const Outcome outcome = run_program("commfuse-sim import megatron train.sh --overlap cfg.yaml --name mine");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "wrote ./mine.model.yaml, ./mine.framework.yaml and ./mine.run.yaml\n"
            "try: commfuse-sim run --config ./mine.run.yaml --hardware dgx-h100-x2\n");
  EXPECT_EQ(
      outcome.err,
      "note: cfg.yaml: the step prices ring_exchange at qkv_fprop, proj_dgrad, fc1_fprop, fc2_dgrad; bulk at "
      "qkv_dgrad, qkv_wgrad, fc1_dgrad, fc1_wgrad\n"
      "note: cfg.yaml lacks qkv_dgrad, qkv_wgrad, proj_fprop, proj_dgrad, fc1_dgrad, fc1_wgrad, fc2_fprop, "
      "fc2_dgrad: TransformerEngine's defaults are assumed\n"
      "note: cfg.yaml: ring_exchange is assumed where the method has no price: proj_fprop ('pipeline', 4 splits), "
      "fc2_fprop ('pipeline', 4 splits); --scope out_proj --strategy sliced --slices 4 prices pipeline with "
      "ideal kernels\n");
  const Outcome run = run_program("commfuse-sim run --config ./mine.run.yaml --hardware dgx-h100-x2");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out.find("mine step on dgx-h100-x2, 16 GPUs (8 tensor x 2 data), batch 64,"), 0U) << run.out;
  EXPECT_EQ(run_program("commfuse-sim run --model ./mine.model.yaml --scope layer --strategy ring_exchange").code, 0);
}

TEST(Import, OverlapHasOnePriceWithAndWithoutAFileOfDefaults) {
  const OwnFolder folder;
  std::ofstream("train.sh")
      << "torchrun --nproc-per-node=8 pretrain_gpt.py --num-layers 4 --hidden-size 2048 --num-attention-heads 16 "
         "--seq-length 2048 --vocab-size 32000 --tensor-model-parallel-size 8 --sequence-parallel --tp-comm-overlap "
         "--bf16 --global-batch-size 1";
  std::ofstream("cfg.yaml") << "proj_fprop: {method: pipeline}\nfc1_fprop: {method: ring_exchange}\n";
  std::filesystem::create_directory("out");
  std::filesystem::create_directory("plain");
  const auto row_of = [](const std::string& flags, const std::string& out) {
    const Outcome written = run_program("commfuse-sim import megatron train.sh --name mine --out " + out + flags);
    EXPECT_EQ(written.code, 0) << written.err;
    const Outcome run = run_program("commfuse-sim run --config " + out +
                                    "/mine.run.yaml --hardware h100-sxm --strategy serial --uncertainty off -o json");
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out).at(0);
  };
  const nlohmann::json plain = row_of("", "plain");
  EXPECT_EQ(plain.at("strategy"), "mine-overlap");
  EXPECT_EQ(plain.at("time_ms"), row_of(" --overlap cfg.yaml", "out").at("time_ms"));
}

TEST(Import, TheMethodsOfAnOverlapFileChangeTheStep) {
  const OwnFolder folder;
  std::ofstream("train.sh")
      << "torchrun --nproc-per-node=4 pretrain_gpt.py --num-layers 4 --hidden-size 4096 --num-attention-heads 32 "
         "--seq-length 4096 --vocab-size 32000 --tensor-model-parallel-size 4 --sequence-parallel --tp-comm-overlap "
         "--bf16 --global-batch-size 1";
  std::filesystem::create_directory("out");
  const auto time_with = [](const std::string& name, const std::string& yaml) {
    std::ofstream("cfg.yaml") << yaml;
    const Outcome written =
        run_program("commfuse-sim import megatron train.sh --overlap cfg.yaml --out out --name " + name);
    EXPECT_EQ(written.code, 0) << written.err;
    const Outcome run = run_program("commfuse-sim run --config out/" + name +
                                    ".run.yaml --hardware h100-sxm --strategy serial --uncertainty off -o json");
    EXPECT_EQ(run.code, 0) << run.err;
    const nlohmann::json row = nlohmann::json::parse(run.out).at(0);
    EXPECT_EQ(row.at("strategy"), name + "-overlap");
    return std::pair(row.at("time_ms").get<double>(), row.at("schedules").get<std::string>());
  };
  const auto [ring, ring_schedules] = time_with("ring", "qkv_fprop: {method: ring_exchange}\n");
  const auto [none, none_schedules] = time_with(
      "none",
      "qkv_fprop: {method: bulk}\nproj_fprop: {method: bulk}\nproj_dgrad: {method: bulk}\nfc1_fprop: {method: "
      "bulk}\nfc2_fprop: {method: bulk}\nfc2_dgrad: {method: bulk}\n");
  EXPECT_NE(ring, none);
  EXPECT_EQ(ring_schedules.find("serial"), std::string::npos) << ring_schedules;
  EXPECT_NE(ring_schedules.find("out_proj_dgrad"), std::string::npos) << ring_schedules;
  EXPECT_EQ(none_schedules, "serial (qkv, out_proj, gate_up, down)");
}

constexpr const char* small_command =
    "x --num-layers 2 --hidden-size 1024 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 "
    "--bf16\n";

TEST(Import, ANameStaysInItsFolder) {
  const OwnFolder folder;
  std::ofstream("train.sh") << small_command;
  const Outcome outcome = run_program("commfuse-sim import megatron train.sh --name ../../up --out .");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "--name: '../../up' is not a plain file name; write one such as mine, and its folder with --out\n");
  EXPECT_EQ(run_program("commfuse-sim import megatron train.sh --name ..").code, 2);
  EXPECT_EQ(run_program("commfuse-sim import megatron train.sh --name ''").code, 2);
  EXPECT_EQ(run_program("commfuse-sim import megatron train.sh --name \"$(printf 'h\\377')\"").code, 2);
}

TEST(Import, DoesNotOverwriteAFile) {
  const OwnFolder folder;
  std::ofstream("train.sh") << small_command;
  std::ofstream("mine.run.yaml") << "mine\n";
  const Outcome outcome = run_program("commfuse-sim import megatron train.sh --name mine");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "./mine.run.yaml already exists; choose another --out, or remove this file\n");
  EXPECT_FALSE(std::filesystem::exists("mine.model.yaml"));
}

TEST(Import, ReadsANameThatIsNotAPlainWord) {
  const OwnFolder folder;
  std::ofstream("train.sh") << small_command;
  const Outcome outcome = run_program("commfuse-sim import megatron train.sh --name 'a: b # \"c'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Outcome run = run_program("commfuse-sim run --config './a: b # \"c.run.yaml' --hardware dgx-h100-x2");
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST(Import, RefusesAFileWithoutACommandLine) {
  const OwnFolder folder;
  std::ofstream("a.txt") << "years of work";
  const Outcome outcome = run_program("commfuse-sim import megatron a.txt");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "a.txt: --hidden-size is missing; give the whole command line, or the script that builds it\n");
}

TEST(Import, WritesNothingThatCouldNotBeLoaded) {
  const OwnFolder folder;
  std::ofstream("train.sh") << "x --num-layers 2 --hidden-size 1024 --num-attention-heads 8 --seq-length 1024 --bf16 "
                               "--num-experts 4 --moe-router-topk 8\n";
  const Outcome outcome = run_program("commfuse-sim import megatron train.sh --name mine");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err.find(
                "train.sh: the file describes files that cannot be loaded, so nothing is written; ./mine.model.yaml:"),
            0U)
      << outcome.err;
  EXPECT_NE(outcome.err.find("a token cannot go to 8 of 4 experts"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists("mine.model.yaml"));
  EXPECT_FALSE(std::filesystem::exists("mine.run.yaml"));
}

TEST(Import, WritesNoStepThatWouldBeRefused) {
  const OwnFolder folder;
  std::ofstream("train.sh") << small_command << " --num-layers 3 --pipeline-model-parallel-size 2 --nproc-per-node 2";
  const Outcome outcome = run_program("commfuse-sim import megatron train.sh --name mine");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "train.sh: the file describes a step that cannot be run, so nothing is written; 3 layers of mine do not "
            "split into pipeline 2 x interleave 1 chunks; choose a number of chunks that divides 3 or 5\n");
  EXPECT_FALSE(std::filesystem::exists("mine.run.yaml"));
  std::ofstream("a.json") << R"({"train_micro_batch_size_per_gpu": 1, "tensor_parallel": {"autotp_size": 16}})";
  EXPECT_EQ(run_program("commfuse-sim import a.json --gpus 16 --model llama-3.1-8b --seq 4K").err,
            "note: a.json is read as deepspeed\n"
            "a.json: the file describes a step that cannot be run, so nothing is written; the number of kv heads 8 is "
            "not a multiple of tensor parallelism 16; choose tensor ranks that divide it\n");
}

TEST(Import, ATorchtitanFileBecomesARunnableStep) {
  const OwnFolder folder;
  std::ofstream("a.toml") << "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\nseq_len "
                             "= 8192\n[parallelism]\ntensor_parallel_degree = 8\n[activation_checkpoint]\nmode = "
                             "\"none\"\n";
  const Outcome outcome = run_program("commfuse-sim import torchtitan a.toml --gpus 16 --name mine");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "wrote ./mine.run.yaml\ntry: commfuse-sim run --config ./mine.run.yaml --hardware dgx-h100-x2\n");
  EXPECT_EQ(outcome.err, "");
  const Outcome run = run_program("commfuse-sim run --config ./mine.run.yaml --hardware dgx-h100-x2");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out.find("llama-3.1-8b step on dgx-h100-x2, 16 GPUs (8 tensor x 2 data), batch 2,"), 0U) << run.out;
}

TEST(Import, RecognizesTheFormatOfAFile) {
  const OwnFolder folder;
  std::ofstream("train.sh") << small_command << " --tensor-model-parallel-size 1 --nproc-per-node 1 --vocab-size 1024";
  const Outcome outcome = run_program("commfuse-sim import train.sh");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "note: train.sh is read as megatron\n");
  EXPECT_TRUE(std::filesystem::exists("megatron.run.yaml"));
  std::ofstream("a.txt") << "years of work";
  EXPECT_EQ(
      run_program("commfuse-sim import a.txt").err,
      "a.txt: the format cannot be detected from its content; write commfuse-sim import FORMAT a.txt, with one of " +
          import::format_names() + "\n");
  std::filesystem::rename("a.txt", "my file");
  EXPECT_EQ(run_program("commfuse-sim import 'my file'").err,
            "my file: the format cannot be detected from its content; write commfuse-sim import FORMAT 'my file', with "
            "one of " +
                import::format_names() + "\n");
}

TEST(Import, AModelsConfigIsAnsweredWithTheFlagThatReadsIt) {
  const OwnFolder folder;
  std::filesystem::create_directory("m1");
  std::ofstream("m1/config.json") << R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama"})";
  const Outcome outcome = run_program("commfuse-sim import m1/config.json");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "m1/config.json: this is the configuration of a Hugging Face model, which needs no import; use --model "
            "m1/config.json\n");
}

constexpr const char* small_yaml =
    "model: {num_layers: 2, hidden_size: 1024, num_attention_heads: 8, encoder_seq_length: 1024, vocab_size: 1024, "
    "tensor_model_parallel_size: 8, position_embedding_type: rope}\n";

TEST(Import, WordsAfterAFlagChangeKeys) {
  const OwnFolder folder;
  std::ofstream("a.yaml") << small_yaml;
  const Outcome outcome = run_program("commfuse-sim import nemo a.yaml --gpus 16 model.num_layers=3 --name mine");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::stringstream model;
  model << std::ifstream("mine.model.yaml").rdbuf();
  EXPECT_NE(model.str().find("layers: 3\n"), std::string::npos) << model.str();
}

TEST(Import, ARecognizedFormatAcceptsItsFlags) {
  const OwnFolder folder;
  std::ofstream("ds.json") << R"({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 1}})";
  EXPECT_EQ(run_program("commfuse-sim import ds.json --gpus 16 --model llama-3.1-8b --seq 4K").code, 0);
  EXPECT_EQ(run_program("commfuse-sim import ds.json --overlap a.yaml").err,
            "ds.json is read as deepspeed, which has no --overlap; see commfuse-sim import deepspeed --help\n");
  EXPECT_EQ(run_program("commfuse-sim import ds.json a=2").err,
            "ds.json is read as deepspeed, which has no 'a=2'; see commfuse-sim import deepspeed --help\n");
  EXPECT_EQ(run_program("commfuse-sim import --gpus 16 deepspeed ds.json").err,
            "--gpus comes before the format; write it after: commfuse-sim import deepspeed FILE --gpus ...\n");
  std::ofstream("a.yaml") << small_yaml;
  EXPECT_EQ(run_program("commfuse-sim import a.yaml --gpus 16 model.num_layers=3 --name mine").code, 0);
}

TEST(Import, SuggestsACommandThatAShellAccepts) {
  const OwnFolder folder;
  std::ofstream("a.yaml") << small_yaml;
  EXPECT_EQ(run_program("commfuse-sim import nemo a.yaml --gpus 16384 --name \"it's mine\"").out,
            "wrote ./it's mine.model.yaml and ./it's mine.run.yaml\n"
            "try: commfuse-sim run --config './it'\\''s mine.run.yaml' --hardware dgx-h100-x2048\n");
}

TEST(Import, ReportsAStepThatNeedsMoreGpusThanTheMachineHas) {
  const OwnFolder folder;
  std::ofstream("a.yaml") << small_yaml;
  const Outcome outcome = run_program("commfuse-sim import nemo a.yaml --gpus 65536 --name mine");
  EXPECT_EQ(outcome.out, "wrote ./mine.model.yaml and ./mine.run.yaml\n");
  EXPECT_EQ(outcome.err, "note: no known machine has 65536 GPUs, so the step cannot be run unchanged\n");
}

TEST(Import, ReportsAnUnknownFormat) {
  const OwnFolder folder;
  EXPECT_EQ(run_program("commfuse-sim import megatrn a.sh").err,
            "unknown format 'megatrn'; did you mean 'megatron'?\n");
  EXPECT_EQ(run_program("commfuse-sim import a.sh").err,
            "'a.sh' is neither a file nor a format; known formats: " + import::format_names() + "\n");
  const Outcome long_name = run_program("commfuse-sim import " + std::string(300, 'x'));
  EXPECT_EQ(long_name.code, 2);
  EXPECT_NE(long_name.err.find("is neither a file nor a format; known formats: "), std::string::npos) << long_name.err;
  EXPECT_EQ(run_program("commfuse-sim import").code, 2);
  EXPECT_EQ(run_program("commfuse-sim import --name a megatron a.sh").err,
            "--name comes before the format; write it after: commfuse-sim import megatron FILE --name ...\n");
}

}  // namespace
}  // namespace commfuse::test
