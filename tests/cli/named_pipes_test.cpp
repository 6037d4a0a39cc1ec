// SPDX-License-Identifier: Apache-2.0
// A named pipe may have no process at its other end, so no command waits for it. A pipe that the shell opens is read.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

TEST(NamedPipes, AreRefusedWhereAFileIsRead) {
  const OwnFolder folder;
  ASSERT_EQ(mkfifo("pipe.yaml", 0600), 0);
  constexpr std::array commands{"commfuse-sim run --schedule pipe.yaml",
                                "commfuse-sim schedule check pipe.yaml",
                                "commfuse-sim schedule mutate pipe.yaml",
                                "commfuse-validate check pipe.yaml",
                                "commfuse-sim score --data pipe.yaml",
                                "commfuse-sim report pipe.yaml",
                                "commfuse-sim plot pipe.yaml",
                                "commfuse-validate compare pipe.yaml",
                                "commfuse-sim run pipe.yaml"};
  for (const char* command : commands) {
    const Outcome outcome = run_program(std::string("timeout 20 ") + command);
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_NE(outcome.err.find(
                  "pipe.yaml: is a named pipe, which is not supported; give a file, or pass its text as /dev/stdin"),
              std::string::npos)
        << command << '\n'
        << outcome.err;
  }
}

TEST(NamedPipes, AreRefusedWhereAFileIsWritten) {
  const OwnFolder folder;
  ASSERT_EQ(mkfifo("pipe.json", 0600), 0);
  ASSERT_EQ(mkfifo("pipe.svg", 0600), 0);
  EXPECT_EQ(run_program("timeout 20 commfuse-sim run --figure pipe.svg").err,
            "pipe.svg cannot be written: named pipes are not supported; give a file, or /dev/stdout\n");
  for (const char* command :
       {"commfuse-sim run --trace pipe.json", "commfuse-sim schedule export --strategy serial --out pipe.json",
        "commfuse-validate run --out pipe.json"}) {
    const Outcome outcome = run_program(std::string("timeout 20 ") + command);
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_EQ(outcome.err, "pipe.json cannot be written: named pipes are not supported; give a file, or /dev/stdout\n")
        << command;
    EXPECT_TRUE(std::filesystem::is_fifo("pipe.json")) << command;
  }
}

TEST(NamedPipes, AreReadAndWrittenWhereAShellOpensThem) {
  const OwnFolder folder;
  ASSERT_EQ(run_program("commfuse-sim schedule export --strategy serial --ranks 2 --out p.yaml").code, 0);
  for (const char* command :
       {"cat p.yaml | commfuse-sim schedule check /dev/stdin", "cat p.yaml | commfuse-sim schedule check /dev/fd/0",
        "commfuse-sim run --ranks 2 --seq 1K -o jsonl | commfuse-sim report /dev/stdin --out r.html",
        "commfuse-sim run --ranks 2 --seq 1K --figure /dev/stdout | cat"}) {
    const Outcome outcome = run_program("sh -c '" + std::string(command) + "'");
    EXPECT_EQ(outcome.code, 0) << command << '\n' << outcome.err;
  }
}

TEST(NamedPipes, PipesOfAnyKindAreRefusedWhereAFileIsReadTwice) {
  const OwnFolder folder;
  ASSERT_EQ(mkfifo("pipe.csv", 0600), 0);
  for (const std::string input : {"/dev/stdin", "pipe.csv"}) {
    const Outcome outcome = run_program(
        "sh -c 'cat /dev/null | timeout 20 commfuse-sim calibrate --base h100-sxm --name mine " + input + "'");
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err,
              input + ": pipes are not supported, because the input is read more than once; give a file\n");
  }
}

TEST(NamedPipes, ProbeRefusesADeviceAsItsOutput) {
  const Outcome outcome = run_program("timeout 20 commfuse-validate probe --out /dev/zero");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "/dev/zero: not a regular file; give another --out\n");
}

}  // namespace
}  // namespace commfuse::test
