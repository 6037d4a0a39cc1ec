// SPDX-License-Identifier: Apache-2.0
// commfuse-sim import: what it writes can be run.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

TEST(Import, AMegatronCommandLineBecomesAStepThatRuns) {
  const OwnFolder folder;
  std::ofstream("train.sh")
      << "torchrun --nproc-per-node=8 --nnodes=2 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
         "--ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention "
         "--num-query-groups 8 --seq-length 8192 --swiglu --normalization RMSNorm "
         "--position-embedding-type rope --disable-bias-linear --vocab-size 128256 "
         "--untie-embeddings-and-output-weights --tensor-model-parallel-size 8 --sequence-parallel "
         "--tp-comm-overlap --bf16 --global-batch-size 64 --use-distributed-optimizer";
  std::ofstream("cfg.yaml") << "qkv_fprop: {method: ring_exchange, aggregate: 0}\nfc1_fprop: {method: ring_exchange}\n";
  const Outcome outcome = run_program("commfuse-sim import megatron train.sh --overlap cfg.yaml --name mine");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "./mine.model.yaml and ./mine.run.yaml\n"
            "try: commfuse-sim run --config ./mine.run.yaml --hardware dgx-h100-x2\n");
  EXPECT_EQ(
      outcome.err,
      "note: userbuffers' ways of overlap are those of the forward pass; a whole step is simulated as sliced, by the "
      "best number of slices at every site\n"
      "note: most products of cfg.yaml are run as: --scope layer --strategy ring_exchange; without overlap: "
      "proj_fprop, fc2_fprop\n");
  const Outcome run = run_program("commfuse-sim run --config ./mine.run.yaml --hardware dgx-h100-x2");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out.find("mine step on dgx-h100-x2, 16 GPUs (8 tensor x 2 data), batch 64,"), 0U) << run.out;
  EXPECT_EQ(run_program("commfuse-sim run --model ./mine.model.yaml --scope layer --strategy ring_exchange").code, 0);
}

constexpr const char* small =
    "x --num-layers 2 --hidden-size 1024 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 "
    "--bf16\n";

TEST(Import, ANameStaysInItsFolder) {
  const OwnFolder folder;
  std::ofstream("train.sh") << small;
  const Outcome outcome = run_program("commfuse-sim import megatron train.sh --name ../../up --out .");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "--name: '../../up' is not a plain file name; write one such as mine, and its folder with --out\n");
  EXPECT_EQ(run_program("commfuse-sim import megatron train.sh --name ..").code, 2);
  EXPECT_EQ(run_program("commfuse-sim import megatron train.sh --name ''").code, 2);
  EXPECT_EQ(run_program("commfuse-sim import megatron train.sh --name \"$(printf 'h\\377')\"").code, 2);
}

TEST(Import, AFileThatIsThereIsNotOverwritten) {
  const OwnFolder folder;
  std::ofstream("train.sh") << small;
  std::ofstream("mine.run.yaml") << "mine\n";
  const Outcome outcome = run_program("commfuse-sim import megatron train.sh --name mine");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "./mine.run.yaml is there already; choose another --out, or remove it\n");
  EXPECT_FALSE(std::filesystem::exists("mine.model.yaml"));
}

TEST(Import, ANameThatIsNoPlainWordIsStillRead) {
  const OwnFolder folder;
  std::ofstream("train.sh") << small;
  const Outcome outcome = run_program("commfuse-sim import megatron train.sh --name 'a: b # \"c'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Outcome run = run_program("commfuse-sim run --config './a: b # \"c.run.yaml' --hardware dgx-h100-x2");
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST(Import, AFileThatIsNoCommandLineIsRefused) {
  const OwnFolder folder;
  std::ofstream("a.txt") << "years of work";
  const Outcome outcome = run_program("commfuse-sim import megatron a.txt");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "a.txt: --hidden-size is missing; give the whole command line, or the script that builds it\n");
}

TEST(Import, WhatCouldNotBeLoadedIsNotWritten) {
  const OwnFolder folder;
  std::ofstream("train.sh") << "x --num-layers 2 --hidden-size 1024 --num-attention-heads 8 --seq-length 1024 --bf16 "
                               "--num-experts 4 --moe-router-topk 8\n";
  const Outcome outcome = run_program("commfuse-sim import megatron train.sh --name mine");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err.find("train.sh: these flags make files that cannot be loaded, so none is written; "
                             "./mine.model.yaml:"),
            0U)
      << outcome.err;
  EXPECT_NE(outcome.err.find("a token cannot go to 8 of 4 experts"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists("mine.model.yaml"));
  EXPECT_FALSE(std::filesystem::exists("mine.run.yaml"));
}

TEST(Import, ATorchtitanFileBecomesAStepThatRuns) {
  const OwnFolder folder;
  std::ofstream("a.toml") << "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\nseq_len "
                             "= 8192\n[parallelism]\ntensor_parallel_degree = 8\n[activation_checkpoint]\nmode = "
                             "\"none\"\n";
  const Outcome outcome = run_program("commfuse-sim import torchtitan a.toml --gpus 16 --name mine");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "./mine.run.yaml\ntry: commfuse-sim run --config ./mine.run.yaml --hardware dgx-h100-x2\n");
  EXPECT_EQ(outcome.err, "");
  const Outcome run = run_program("commfuse-sim run --config ./mine.run.yaml --hardware dgx-h100-x2");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out.find("llama-3.1-8b step on dgx-h100-x2, 16 GPUs (8 tensor x 2 data), batch 2,"), 0U) << run.out;
}

TEST(Import, AFileSaysItsFormat) {
  const OwnFolder folder;
  std::ofstream("train.sh") << small << " --tensor-model-parallel-size 1 --nproc-per-node 1 --vocab-size 1024";
  const Outcome outcome = run_program("commfuse-sim import train.sh");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "note: train.sh is read as megatron; for its flags write commfuse-sim import megatron FILE\n");
  EXPECT_TRUE(std::filesystem::exists("megatron.run.yaml"));
  std::ofstream("a.txt") << "years of work";
  EXPECT_EQ(run_program("commfuse-sim import a.txt").err,
            "a.txt: its format cannot be told from what it holds; write commfuse-sim import FORMAT a.txt, with one of "
            "megatron, nemo, torchtitan, deepspeed\n");
}

TEST(Import, AFormatThatIsNoneIsSaid) {
  const OwnFolder folder;
  EXPECT_EQ(run_program("commfuse-sim import megatrn a.sh").err,
            "unknown format 'megatrn'; did you mean 'megatron'?\n");
  EXPECT_EQ(run_program("commfuse-sim import a.sh").err,
            "'a.sh' is neither a file nor a format; known formats: megatron, nemo, torchtitan, deepspeed\n");
  EXPECT_EQ(run_program("commfuse-sim import").code, 2);
  EXPECT_EQ(run_program("commfuse-sim import --name a megatron a.sh").err,
            "--name stands before the format; write it behind: commfuse-sim import megatron FILE --name ...\n");
}

}  // namespace
}  // namespace commfuse::test
