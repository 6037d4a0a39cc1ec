// SPDX-License-Identifier: Apache-2.0
// Tests whole runs of the commands that run ranks on GPUs. Each process is a thread, and each GPU is simulated in
// software (a test double). Idle ranks, fewer ranks than processes, and processes that share a GPU must neither hang
// nor change what is reported.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "model/config/command_line.h"
#include "model/record/run_record.h"
#include "tests/own_folder.h"
#include "tests/validate/mpi/threads_world.h"
#include "validate/commands/commands.h"
#include "validate/mpi/launch.h"

namespace commfuse::validate {
namespace {

/// Exit code and last message of each process.
struct Ended {
  std::vector<int> codes;
  std::vector<std::string> sentences;
};

/// Runs the program on `processes` processes.
Ended on_gpus(int processes, const std::vector<std::string>& words) {
  Ended ended{.codes = std::vector<int>(static_cast<std::size_t>(processes), -1),
              .sentences = std::vector<std::string>(static_cast<std::size_t>(processes))};
  test::Mail mail(processes);
  std::vector<std::jthread> threads;
  for (int process = 0; process < processes; ++process) {
    threads.emplace_back([&, process] {
      const auto mine = static_cast<std::size_t>(process);
      CLI::App app;
      app.require_subcommand(1);
      int status = exit_code::done;
      Launch launch(std::make_unique<test::ThreadsWorld>(mail, process));
      add_check(app, launch, status);
      add_run(app, launch, status);
      add_bench(app, launch, status);
      add_links(app, launch, status);
      std::vector<const char*> arguments{"commfuse-validate"};
      for (const std::string& word : words) {
        arguments.push_back(word.c_str());
      }
      const LastWords last = run_quietly(app, static_cast<int>(arguments.size()), arguments.data(), status);
      ended.sentences[mine] = last.sentence;
      ended.codes[mine] = launch.leave(last.code, last.sentence);
    });
  }
  threads.clear();
  return ended;
}

class NcclCommands : public testing::Test {
 protected:
  // NOLINTBEGIN(concurrency-mt-unsafe): no other thread runs in SetUp and TearDown
  void SetUp() override {
    ::setenv("COMMFUSE_CUDA_PLUGIN", COMMFUSE_CUDA_DOUBLE, 1);
    ::setenv("SOFTWARE_GPU_DEVICES", "8", 1);
  }
  void TearDown() override {
    ::unsetenv("COMMFUSE_CUDA_PLUGIN");
    ::unsetenv("SOFTWARE_GPU_DEVICES");
  }
  // NOLINTEND(concurrency-mt-unsafe)
  const OwnFolder folder_;
};

class NcclCommandsOnRanks : public NcclCommands, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(ThreeFourEight, NcclCommandsOnRanks, testing::Values(3, 4, 8));

TEST_P(NcclCommandsOnRanks, LinksFinishesThoughMostRanksAreIdle) {
  const int ranks = GetParam();
  const Ended ended = on_gpus(ranks, {"links", "--executor", "nccl", "--out", "links.json"});
  EXPECT_EQ(ended.codes, std::vector<int>(static_cast<std::size_t>(ranks), exit_code::done)) << ended.sentences[0];
  const RunRecord record = load_run_record("links.json");
  const auto n = static_cast<std::size_t>(ranks);
  EXPECT_EQ(record.micro_benchmarks.size(), 2 * n * (n - 1) + n);  // two sizes per link, one GEMM per rank
  EXPECT_EQ(record.environment.devices.size(), 2 * n);             // before and after the run
  EXPECT_EQ(record.environment.devices.back().gpu, "GPU-" + std::to_string(ranks - 1));
}

TEST_P(NcclCommandsOnRanks, CheckPassesThoughNcclSumsInItsOwnOrder) {
  const int ranks = GetParam();
  const Ended ended = on_gpus(
      ranks, {"check", "--executor", "nccl", "--scope", "gemm_rs", "--strategy", "serial,commfuse", "-o", "csv"});
  EXPECT_EQ(ended.codes, std::vector<int>(static_cast<std::size_t>(ranks), exit_code::done)) << ended.sentences[0];
}

TEST_P(NcclCommandsOnRanks, CheckPassesWithPutsAndFp8OnTheWire) {
  const int ranks = GetParam();
  const Ended ended = on_gpus(ranks, {"check", "--executor", "nccl", "--scope", "ag_gemm", "--strategy", "commfuse",
                                      "--nccl-exchange", "put", "--wire", "fp8", "-o", "csv"});
  EXPECT_EQ(ended.codes, std::vector<int>(static_cast<std::size_t>(ranks), exit_code::done)) << ended.sentences[0];
}

TEST_F(NcclCommands, PutsWithCudaGraphsAreRefused) {
  const Ended ended = on_gpus(2, {"run", "--executor", "nccl", "--hardware", "h100-sxm", "--model", "llama-3.1-8b",
                                  "--scope", "gate_up", "--ranks", "2", "--nccl-exchange", "put", "--issue", "graph"});
  EXPECT_EQ(ended.codes[0], exit_code::user_mistake) << ended.sentences[0];
  EXPECT_NE(ended.sentences[0].find("--nccl-exchange put cannot be combined with --issue graph"), std::string::npos)
      << ended.sentences[0];
}

TEST_P(NcclCommandsOnRanks, RunWritesARecordWithVariablesAndClocksOfAllRanks) {
  const int ranks = GetParam();
  ::setenv("NCCL_ALGO", "Ring", 1);  // NOLINT(concurrency-mt-unsafe)
  const Ended ended = on_gpus(ranks, {"run",
                                      "--executor",
                                      "nccl",
                                      "--hardware",
                                      "h100-sxm",
                                      "--model",
                                      "llama-3.1-8b",
                                      "--seq",
                                      "512",
                                      "--scope",
                                      "gate_up",
                                      "--ranks",
                                      std::to_string(ranks == 3 ? 2 : ranks),
                                      "--strategy",
                                      "serial,commfuse",
                                      "--iterations",
                                      "3",
                                      "--warm-up",
                                      "1",
                                      "--out",
                                      "record.json"});
  ::unsetenv("NCCL_ALGO");  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(ended.codes, std::vector<int>(static_cast<std::size_t>(ranks), exit_code::done)) << ended.sentences[0];
  const RunRecord record = load_run_record("record.json");
  ASSERT_EQ(record.runs.size(), 2U);
  EXPECT_EQ(record.runs[0].makespans.size(), 3U);
  EXPECT_EQ(record.runs[0].status, RunStatus::done) << record.runs[0].message;
  const auto algo = std::pair<std::string, std::string>("NCCL_ALGO", "Ring");
  EXPECT_NE(std::ranges::find(record.environment.variables, algo), record.environment.variables.end());
  EXPECT_EQ(record.environment.devices.front().when, "before");
  EXPECT_EQ(record.environment.devices.back().when, "after");
}

TEST_F(NcclCommands, ProcessesWithoutARankStayIdleToTheEnd) {
  const Ended ended = on_gpus(4, {"links", "--executor", "nccl", "--ranks", "3", "--out", "links.json"});
  EXPECT_EQ(ended.codes, std::vector<int>(4, exit_code::done)) << ended.sentences[0];
  EXPECT_EQ(load_run_record("links.json").environment.hosts.size(), 3U);
}

// A launcher may show every process the same single GPU. Both processes then take it and must detect each other.
TEST_F(NcclCommands, ProcessesCountTheirGpusModuloTheVisibleOnes) {
  ::setenv("SOFTWARE_GPU_DEVICES", "1", 1);  // NOLINT(concurrency-mt-unsafe): no other threads run yet
  const Ended ended = on_gpus(2, {"links", "--executor", "nccl"});
  for (const std::string& sentence : ended.sentences) {
    EXPECT_EQ(sentence.substr(0, 46), "ranks 0 and 1 both have the GPU here, GPU-0, b");
  }
  EXPECT_EQ(ended.codes, std::vector<int>(2, exit_code::user_mistake));
}

TEST_F(NcclCommands, TwoRanksOnOneGpuAreNamed) {
  const Ended ended = on_gpus(2, {"links", "--executor", "nccl", "--device", "0"});
  for (const std::string& sentence : ended.sentences) {
    EXPECT_EQ(sentence,
              "ranks 0 and 1 both have the GPU here, GPU-0, but NCCL needs one GPU per rank; start at most one process "
              "per GPU, or give each its own GPU with CUDA_VISIBLE_DEVICES");
  }
  EXPECT_EQ(ended.codes, std::vector<int>(2, exit_code::user_mistake));
}

class PeerCommandsOnRanks : public NcclCommands, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(TwoThreeEight, PeerCommandsOnRanks, testing::Values(2, 3, 8));

TEST_P(PeerCommandsOnRanks, CheckRequiresTheInterpretersExactSums) {
  const int ranks = GetParam();
  const Ended ended = on_gpus(
      ranks, {"check", "--executor", "cuda-peer", "--scope", "gemm_rs", "--strategy", "serial,async_tp", "-o", "csv"});
  EXPECT_EQ(ended.codes, std::vector<int>(static_cast<std::size_t>(ranks), exit_code::done)) << ended.sentences[0];
}

TEST_P(PeerCommandsOnRanks, LinksFinishesThoughSomeRanksAreIdle) {
  const int ranks = GetParam();
  const Ended ended = on_gpus(ranks, {"links", "--executor", "cuda-peer", "--ranks", "2", "--out", "links.json"});
  EXPECT_EQ(ended.codes, std::vector<int>(static_cast<std::size_t>(ranks), exit_code::done)) << ended.sentences[0];
  const RunRecord record = load_run_record("links.json");
  EXPECT_EQ(record.executor, "cuda-peer");
  EXPECT_EQ(record.links, "peers");
}

TEST_F(NcclCommands, UnknownValuesOfNcclFlagsAreNamed) {
  const auto refusal = [](const std::string& flag, const std::string& value) {
    const Ended ended = on_gpus(2, {"links", "--executor", "nccl", flag, value});
    EXPECT_EQ(ended.codes, std::vector<int>(2, exit_code::user_mistake)) << flag;
    return ended.sentences[0];
  };
  EXPECT_EQ(refusal("--nccl-p2p-channels", "many"),
            "--nccl-p2p-channels: 'many' is not a whole number from 1 to 64; write one, as in --nccl-p2p-channels 1");
  EXPECT_EQ(refusal("--nccl-register", "yes"), "--nccl-register: unknown value 'yes'; known values: on, off, windows");
}

TEST_F(NcclCommands, CudaPeerWithCudaGraphsIsRefused) {
  const Ended ended = on_gpus(2, {"links", "--executor", "cuda-peer", "--issue", "graph"});
  EXPECT_EQ(ended.codes, std::vector<int>(2, exit_code::user_mistake));
  EXPECT_EQ(ended.sentences[0],
            "--issue graph is not available with cuda-peer, whose flags count iterations; use gated or stream");
}

TEST_F(NcclCommands, TwoPeersOnOneGpuAreNamed) {
  const Ended ended = on_gpus(2, {"links", "--executor", "cuda-peer", "--device", "0"});
  EXPECT_EQ(ended.codes, std::vector<int>(2, exit_code::user_mistake));
  EXPECT_NE(ended.sentences[1].find("but cuda-peer needs one GPU per rank"), std::string::npos) << ended.sentences[1];
}

}  // namespace
}  // namespace commfuse::validate
