// SPDX-License-Identifier: Apache-2.0
// Where there is no GPU every command that needs one says so in one sentence and exits with 69.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

/// Set aside for machines that have one: there the same commands run.
bool has_gpu() { return run_program("commfuse-validate doctor").out.find("cuda       yes") != std::string::npos; }

TEST(ValidateGpu, EveryCommandThatNeedsOneSaysWhatIsMissingAndExitsWith69) {
  if (has_gpu()) {
    GTEST_SKIP() << "there is a GPU here";
  }
  for (const char* command :
       {"check --executor cuda-virtual", "run --executor cuda-virtual", "compare --executor cuda-virtual",
        "bench --executor cuda-virtual --quick", "links --executor cuda-virtual", "probe",
        "calibrate --executor cuda-virtual --base h200-sxm --out never.yaml"}) {
    const Outcome outcome = run_program(std::string("commfuse-validate ") + command);
    EXPECT_EQ(outcome.code, 69) << command << outcome.err;
    EXPECT_EQ(outcome.out, "") << command;
    EXPECT_TRUE(outcome.err.starts_with("nothing can run on a GPU here: ")) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
  EXPECT_FALSE(std::filesystem::exists("never.yaml"));
}

TEST(ValidateGpu, FlagsOfAGpuAreRefusedElsewhere) {
  for (const char* command : {"run --device 1", "bench --view all-ranks", "check --device 0", "compare --nvls off"}) {
    const Outcome outcome = run_program(std::string("commfuse-validate ") + command);
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_NE(outcome.err.find("is of a GPU; add --executor cuda-virtual or --executor nccl"), std::string::npos)
        << outcome.err;
  }
}

TEST(ValidateGpu, FlagsThatMakeNoSenseAreNamedBeforeAnythingIsLoaded) {
  const auto refusal = [](const std::string& flags) {
    const Outcome outcome = run_program("commfuse-validate run --executor cuda-virtual " + flags);
    EXPECT_EQ(outcome.code, 2) << flags;
    return outcome.err;
  };
  EXPECT_NE(refusal("--issue later").find("--issue"), std::string::npos);
  EXPECT_NE(refusal("--link bounce --link-bandwidth '1 GB/s'").find("leave out --link-bandwidth"), std::string::npos);
  EXPECT_NE(refusal("--device x").find("--device: 'x' is no whole number"), std::string::npos);
  EXPECT_EQ(refusal("--partition 0"),
            "--partition: '0' is no whole number from 1 to 1024; write one, as in --partition 1\n");
  EXPECT_EQ(refusal("--nccl-p2p-channels many"),
            "--nccl-p2p-channels: 'many' is no whole number from 1 to 64; write one, as in --nccl-p2p-channels 1\n");
  EXPECT_EQ(refusal("--attention-by flash"),
            "--attention-by: 'flash' is no kernel; known kernels: auto, cudnn, cublaslt\n");
  EXPECT_EQ(refusal("--nccl-register yes"), "--nccl-register: 'yes' is no value; known values: on, off\n");
  EXPECT_NE(refusal("--compute emulated").find("a GPU does the real thing"), std::string::npos);
  EXPECT_EQ(run_program("commfuse-validate probe --stage lunch").code, 2);
}

TEST(ValidateGpu, RanksOnGpusNeedSomebodyWhoStartedThem) {
  const Outcome outcome = run_program("commfuse-validate check --executor nccl");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "ranks are processes, and nobody started several; start them, as in mpirun -np 8 or torchrun\n");
}

TEST(FirstRun, WhereThereIsNoGpuItPredictsSaysWhyAndIsGoneOnWith) {
  if (has_gpu()) {
    GTEST_SKIP() << "there is a GPU here";
  }
  const std::filesystem::path bundle = std::filesystem::temp_directory_path() / "commfuse-first-run-test";
  const std::string script =
      "FIRST_RUN_PROGRAMS=" COMMFUSE_BIN_DIR
      " FIRST_RUN_PATIENCE=20 FIRST_RUN_STAGES='environment predictions checks' " COMMFUSE_SOURCE_DIR
      "/validate/cuda/first_run.sh run " +
      bundle.string();
  std::filesystem::remove_all(bundle);
  const Outcome first = run_program(script);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.err.find("predictions: exit 0"), std::string::npos) << first.err;
  EXPECT_NE(first.err.find("checks: exit 69"), std::string::npos) << first.err;
  std::ifstream predictions(bundle / "predictions.jsonl");
  int lines = 0;
  for (std::string line; std::getline(predictions, line); ++lines) {
    EXPECT_TRUE(line.starts_with("{\"scope\":")) << line;
    EXPECT_TRUE(line.ends_with("]}")) << line;
  }
  EXPECT_EQ(lines, 15);  // three shapes at five paces
  const Outcome again = run_program(script);
  EXPECT_NE(again.err.find("predictions: done before"), std::string::npos) << again.err;
  std::filesystem::remove_all(bundle);
}

/// first_run.sh with programs of its own: a validator that writes what it is asked for and measures nothing, and a
/// simulator whose `calibrate` does the same.
class FirstRunByFakes : public testing::Test {
 protected:
  FirstRunByFakes() {
    program("commfuse-validate",
            "for word; do [ \"$before\" = --out ] && echo \"$*\" >>\"$word\"; before=$word; done; echo \"ran $*\"");
    program("commfuse-sim", "case $1 in calibrate) exec commfuse-validate \"$@\" ;; esac; exec " COMMFUSE_BIN_DIR
                            "/commfuse-sim \"$@\"");
  }
  static void program(const std::string& name, const std::string& body) {
    std::filesystem::create_directory("fakes");
    std::ofstream("fakes/" + name) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions("fakes/" + name, std::filesystem::perms::owner_all);
  }
  static Outcome first_run(const std::string& arguments, const std::string& variables = "") {
    return run_program("PATH=\"$PWD/fakes:$PATH\" FIRST_RUN_PROGRAMS=\"$PWD/fakes\" FIRST_RUN_PATIENCE=20 " +
                       variables + " " COMMFUSE_SOURCE_DIR "/validate/cuda/first_run.sh " + arguments +
                       " \"$PWD/bundle\"");
  }
  const OwnFolder folder_;
};

TEST_F(FirstRunByFakes, AllStagesComeToTheirEndAndLeaveAtMostEightFiles) {
  const Outcome outcome = first_run("run");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::size_t ended = 0;
  for (std::size_t at = 0; (at = outcome.err.find(": exit ", at)) != std::string::npos; ++at, ++ended) {
    EXPECT_EQ(outcome.err.substr(at, 9), ": exit 0 ") << outcome.err;
  }
  EXPECT_EQ(ended, 15U) << outcome.err;
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("bundle")) {
    EXPECT_TRUE(entry.is_regular_file()) << entry.path();
    ++files;
  }
  EXPECT_LE(files, 8U);
  const std::string comparisons = contents_of("bundle/comparisons.jsonl");
  EXPECT_EQ(std::ranges::count(comparisons, '\n'), 15);  // three shapes at five paces
}

TEST_F(FirstRunByFakes, AFusedAttentionThatIsNotOursFailsItsStage) {
  const auto stage_after = [](const std::string& difference) {
    std::filesystem::remove_all("bundle");
    program("commfuse-validate",
            "for word; do [ \"$before\" = --out ] && echo 'fused,fused_difference,keys=4096,share,1," + difference +
                ",0,0' >>\"$word\"; before=$word; done");
    return first_run("run", "FIRST_RUN_STAGES=fused").err;
  };
  EXPECT_NE(stage_after("0.0031").find("fused: exit 0"), std::string::npos);
  EXPECT_NE(stage_after("0.0111").find("fused: exit 1"), std::string::npos);
  EXPECT_NE(contents_of("bundle/log.txt").find("cuDNN is too far from ours: fused,"), std::string::npos);
}

TEST_F(FirstRunByFakes, WhatNoLongerFitsIntoACallIsLeftToTheNextOne) {
  const std::string some = "FIRST_RUN_STAGES='environment middle'";
  const Outcome first = first_run("run", some + " FIRST_RUN_LIMIT=100");
  EXPECT_NE(first.err.find("environment: exit 0"), std::string::npos) << first.err;
  EXPECT_NE(first.err.find("middle: left to the next call, as it may take 150 s and "), std::string::npos) << first.err;
  EXPECT_FALSE(std::filesystem::exists("bundle/comparisons.jsonl"));
  const Outcome second = first_run("run", some);
  EXPECT_NE(second.err.find("environment: done before"), std::string::npos) << second.err;
  EXPECT_NE(second.err.find("middle: exit 0"), std::string::npos) << second.err;
}

TEST_F(FirstRunByFakes, ThePlanFitsIntoOneCallOfTenMinutes) {
  const Outcome outcome = first_run("plan");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::size_t sum = outcome.out.find("together");
  ASSERT_NE(sum, std::string::npos) << outcome.out;
  EXPECT_LE(std::stoi(outcome.out.substr(sum + 8)), 540);  // and a minute to start
  EXPECT_NE(outcome.err.find("it can run here"), std::string::npos) << outcome.err;
}

TEST_F(FirstRunByFakes, TheSanitizerIsAskedForThreeKindsOfMistakesAndMissedWhereItIsNot) {
  if (run_program("command -v compute-sanitizer").code != 0) {
    const Outcome missing = first_run("sanitize");
    EXPECT_EQ(missing.code, 69);
    EXPECT_EQ(missing.err, "first_run: there is no compute-sanitizer here; it comes with the CUDA Toolkit\n");
  }
  program("compute-sanitizer", "echo \"kind $2\"; shift 4; exec \"$@\"");
  EXPECT_EQ(first_run("sanitize").code, 0);
  const std::string log = contents_of("bundle/log.txt");
  for (const char* kind : {"kind memcheck\n", "kind racecheck\n", "kind synccheck\n"}) {
    EXPECT_NE(log.find(std::string(kind) + "ran check --executor cuda-virtual"), std::string::npos) << log;
  }
  program("compute-sanitizer", "exit 1");
  EXPECT_EQ(first_run("sanitize").code, 1);
}

TEST_F(FirstRunByFakes, AnUnknownVerbIsRefused) {
  const Outcome outcome = first_run("start");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err.find("usage: validate/cuda/first_run.sh"), 0U) << outcome.err;
}

}  // namespace
}  // namespace commfuse::test
