// SPDX-License-Identifier: Apache-2.0
// Tests that no command overwrites its own input.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

struct Mistaken {
  std::string_view command;
  std::string_view path;  ///< The command reads it, and would also write it.
};

TEST(OutputPaths, AnInputIsNeverReplacedByTheOutput) {
  const OwnFolder folder;
  std::ofstream("s.yaml") << "schema: commfuse.sweep/1\nset: {ranks: 2, seq: 1K, strategy: {name: [serial, "
                             "commfuse]}}\noutputs: [json]\n";
  ASSERT_EQ(run_program("commfuse-sim sweep s.yaml --out o").code, 0);
  std::filesystem::copy_file("o/results.sqlite", "b.sqlite");
  ASSERT_EQ(run_program("commfuse-sim schedule export --strategy serial --ranks 2 --out p.yaml").code, 0);
  std::ofstream("c.yaml") << "seq: 1K\n";
  std::ofstream("r.json") << "{}";
  constexpr std::array mistakes{
      Mistaken{"commfuse-sim results o/results.sqlite", "o/results.sqlite"},
      Mistaken{"commfuse-sim best o", "o/results.sqlite"},
      Mistaken{"commfuse-sim diff o b.sqlite", "b.sqlite"},
      Mistaken{"commfuse-sim report o", "o/results.sqlite"},
      Mistaken{"commfuse-sim report o/results.json", "o/results.json"},
      Mistaken{"commfuse-sim plot o/results.json breakdown", "o/results.json"},
      Mistaken{"commfuse-sim schedule export p.yaml -o dot", "p.yaml"},
      Mistaken{"commfuse-validate run --config c.yaml", "c.yaml"},
  };
  for (const Mistaken& mistake : mistakes) {
    const std::string path(mistake.path);
    const std::string before = contents_of(path);
    const Outcome outcome = run_program(std::string(mistake.command) + " --out ./" + path);
    EXPECT_EQ(outcome.code, 2) << mistake.command;
    EXPECT_EQ(outcome.err, "./" + path + " cannot be written: the command reads this file; choose another path\n");
    EXPECT_EQ(contents_of(path), before) << mistake.command;
  }
  EXPECT_EQ(run_program("commfuse-sim run c.yaml --figure c.yaml").code, 2);
  EXPECT_EQ(contents_of("c.yaml"), "seq: 1K\n");
  EXPECT_EQ(run_program("commfuse-validate compare r.json --page r.json").code, 2);
  EXPECT_EQ(contents_of("r.json"), "{}");
}

TEST(OutputPaths, AFolderThatCannotBeMadeIsAUserError) {
  const OwnFolder folder;
  std::ofstream("file") << "x";
  const Outcome outcome = run_program(
      "commfuse-sim tune --model llama-3.1-8b --hardware h100-sxm --ranks 2 --seq 1K --batch 2 --out file/x");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "--out: file/x cannot be created (Not a directory); choose another folder\n");
}

TEST(OutputPaths, AFileThatOnlyLooksRegularIsAUserError) {
  const OwnFolder folder;
  const Outcome outcome = run_program("commfuse-sim report /proc/self/mem");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "/proc/self/mem cannot be read; give the folder of a sweep, its store, JSON or JSON Lines\n");
}

TEST(OutputPaths, ADatabaseIsNeverReplacedByAnOutput) {
  const OwnFolder folder;
  std::ofstream("notes.sqlite") << "SQLite format 3, and more";
  const Outcome outcome = run_program("commfuse-sim schedule export --strategy serial --out notes.sqlite");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "notes.sqlite cannot be written: it is a database, which would be overwritten; choose another path\n");
  EXPECT_EQ(contents_of("notes.sqlite"), "SQLite format 3, and more");
}

}  // namespace
}  // namespace commfuse::test
