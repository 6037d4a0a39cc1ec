// SPDX-License-Identifier: Apache-2.0
// Where there is no GPU every command that needs one says so in one sentence and exits with 69.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/cli/program.h"

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
  const std::string script = "FIRST_RUN_PROGRAMS=" COMMFUSE_BIN_DIR
                             " FIRST_RUN_STAGES='environment predictions checks' " COMMFUSE_SOURCE_DIR
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

}  // namespace
}  // namespace commfuse::test
