// SPDX-License-Identifier: Apache-2.0
// Nothing that happens around a program may make it crash, lose output or change an answer. See docs/testing.md.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

const std::string one_point = "commfuse-sim run --seq 8K";
const std::string many_points = "commfuse-sim run --axis seq=1K..64K --axis ranks=2,4,8";

/// Passes the whole line to the shell, so that its own redirections come first.
Outcome in_shell(const std::string& line) { return run_program("bash -c '" + line + "'"); }

class FullDisk : public ::testing::TestWithParam<const char*> {};

TEST_P(FullDisk, OnStdoutIsAFailureThatIsReported) {
  if (!std::filesystem::exists("/dev/full")) {
    GTEST_SKIP() << "/dev/full not found";
  }
  const OwnFolder folder;
  const Outcome outcome = in_shell(std::string(GetParam()) + " > /dev/full");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_FALSE(outcome.err.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Commands, FullDisk,
    ::testing::Values("commfuse-sim --help", "commfuse-sim run --seq 8K", "commfuse-sim run --seq 8K -o json",
                      "commfuse-sim sweep \"" COMMFUSE_SOURCE_DIR "/configs/sweeps/demo.yaml\" --out demo",
                      "commfuse-sim pages man", "commfuse-validate doctor", "commfuse-validate --help"));

TEST(Faults, MeasurementsThatCannotBeWrittenArePrinted) {
  if (!std::filesystem::exists("/dev/full")) {
    GTEST_SKIP() << "/dev/full not found";
  }
  const OwnFolder folder;
  const std::string point =
      " --hardware cpu --model 64x128 --seq 64 --scope gate_up --ranks 2 --strategy serial --warm-up 0 --iterations 1";
  for (const std::string& command :
       {"run" + point + " --out", "compare" + point + " --out", "compare" + point + " --page",
        std::string("bench --quick --only gaps --ranks 2 --out"),
        std::string("links --ranks 2 --iterations 3 --out")}) {
    const Outcome outcome = run_program("commfuse-validate " + command + " /dev/full");
    EXPECT_EQ(outcome.code, 1) << command;
    EXPECT_NE(outcome.out.find("oise floor: "), std::string::npos) << command << outcome.out;  // the end of the table
    EXPECT_TRUE(
        outcome.err.ends_with("/dev/full could not be written completely: No space left on device; free some "
                              "space or choose another disk\n"))
        << command << outcome.err;
  }
}

TEST(Faults, ASweepThatCannotPrintItsTableStillWritesItsFolder) {
  const OwnFolder folder;
  in_shell("commfuse-sim sweep \"" COMMFUSE_SOURCE_DIR "/configs/sweeps/demo.yaml\" --out demo > /dev/full");
  EXPECT_TRUE(std::filesystem::exists("demo/results.csv"));
}

TEST(Faults, AReaderThatGoesAwayEndsTheProgramQuietly) {
  const Outcome outcome = in_shell(many_points + " | head -n 1; exit ${PIPESTATUS[0]}");
  EXPECT_TRUE(outcome.code == 0 || outcome.code == 1 || outcome.code == 141) << outcome.code;
  EXPECT_EQ(outcome.out, "llama-3.1-70b mlp on h100-sxm, batch 1, bf16\n");
}

TEST(Faults, SurvivesClosedStreams) {
  const Outcome closed = in_shell(one_point + " >&-");
  EXPECT_EQ(closed.code, 1);
  EXPECT_EQ(closed.err, "the output could not be written\n");
  EXPECT_EQ(in_shell(one_point + " 2>&-").code, 0);
  EXPECT_EQ(in_shell("commfuse-sim run --seq nonsense 2>&-").code, 2);
  EXPECT_EQ(in_shell(one_point + " <&-").code, 0);
}

TEST(Faults, NeitherHomeNorLocaleNorTerminalChangeAnAnswer) {
  const Outcome usual = run_program(one_point);
  ASSERT_EQ(usual.code, 0) << usual.err;
  for (const std::string environment :
       {"env -u HOME", "env HOME=/nonexistent", "env LC_ALL=C", "env LC_ALL=xx_XX.UTF-8", "env LANG=de_DE.UTF-8",
        "env LINES=1", "env TERM=dumb", "env -u TERM", "env TZ=Mars/Olympus", "env TMPDIR=/nonexistent"}) {
    const Outcome outcome = run_program(fmt::format("{} {}", environment, one_point));
    EXPECT_EQ(outcome.code, 0) << environment << outcome.err;
    EXPECT_EQ(outcome.out, usual.out) << environment;
  }
}

TEST(Faults, RunsInAnyWorkingFolder) {
  const OwnFolder folder;
  const Outcome outcome = in_shell("mkdir gone && cd gone && rmdir ../gone && " + one_point);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

}  // namespace
}  // namespace commfuse::test
