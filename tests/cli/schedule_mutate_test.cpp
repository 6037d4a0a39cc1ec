// SPDX-License-Identifier: Apache-2.0
// Tests the counts, the list and the exit codes of commfuse-sim schedule mutate.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/cli/program.h"
#include "tests/slow_build.h"

namespace commfuse::test {
namespace {

using nlohmann::json;

TEST(ScheduleMutate, EveryMistakeInEveryScheduleIsCaughtOrProvedEquivalent) {
  const std::string ranks = slow_build ? "2" : "2..4";
  const Outcome outcome = run_program("commfuse-sim schedule mutate --strategy all --ranks " + ranks);
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find(", 0 survived\n"), std::string::npos) << outcome.out;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(ScheduleMutate, ATableHasARowPerKindAndATotal) {
  const Outcome outcome = run_program("commfuse-sim schedule mutate doubling");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out,
            "mutation    mutations  hazard  contents  equivalent  survived\n"
            "shift               2       0         2           0         0\n"
            "offset             16       9         7           0         0\n"
            "wait                3       2         0           1         0\n"
            "accumulate          3       3         0           0         0\n"
            "removal             5       2         3           0         0\n"
            "lane                5       0         0           5         0\n"
            "order               4       0         0           4         0\n"
            "all                38      16        12          10         0\n"
            "38 mutations of 1 schedule: 28 caught, 10 equivalent, 0 survived\n");
}

TEST(ScheduleMutate, EquivalentMutantsAreListedWithTheirReason) {
  const Outcome outcome = run_program("commfuse-sim schedule mutate doubling --list equivalent");
  EXPECT_NE(outcome.out.find("doubling on 4 ranks, op 2 (exchange): no wait for op 0: equivalent (same order)\n"),
            std::string::npos)
      << outcome.out;
  EXPECT_EQ(outcome.out.find("caught ("), std::string::npos);
  const Outcome alone = run_program("commfuse-sim schedule mutate --strategy serial --ranks 1 --list equivalent");
  EXPECT_NE(alone.out.find("serial data_parallel on 1 rank, op 4 (gemm): no wait for op 2: equivalent (same order)\n"),
            std::string::npos)
      << alone.out;
}

TEST(ScheduleMutate, JsonHasAnObjectPerKindOrMutant) {
  const json kinds = json::parse(run_program("commfuse-sim schedule mutate doubling -o json").out);
  ASSERT_EQ(kinds.size(), 7U);
  EXPECT_EQ(kinds[0].dump(),
            "{\"caught_bounds\":0,\"caught_collective_order\":0,\"caught_contents\":2,\"caught_deadlock\":0,"
            "\"caught_hazard\":0,\"caught_unmatched\":0,\"equivalent\":0,\"mutation\":\"shift\","
            "\"schedules\":1,\"schema\":\"commfuse.mutations/1\",\"survived\":0}");
  const json mutants = json::parse(run_program("commfuse-sim schedule mutate doubling -o json --list all").out);
  ASSERT_EQ(mutants.size(), 38U);
  EXPECT_EQ(mutants[0].at("schema"), "commfuse.mutant/1");
  EXPECT_EQ(mutants[0].at("schedule"), "doubling");
  EXPECT_EQ(mutants[0].at("kind"), "shift");
  EXPECT_EQ(mutants[0].at("fate"), "caught");
  EXPECT_EQ(mutants[0].at("why"), "contents");
  EXPECT_EQ(mutants[0].at("finding"), "rank 0 ends with y[0,0] in row 1 of y instead of y[1,0]");
}

TEST(ScheduleMutate, PrintsTheSameBytesEveryTime) {
  const std::string command = "commfuse-sim schedule mutate --ranks 2,3 --scope mlp -o json --list all";
  EXPECT_EQ(run_program(command).out, run_program(command).out);
}

TEST(ScheduleMutate, ASurvivorIsListedAndExitsWith4) {
  std::string text = contents_of(COMMFUSE_SOURCE_DIR "/configs/schedules/doubling.yaml");
  text += "  - {id: 5, op: elementwise, function: copy, in: \"x[0]\", out: \"x[0]\", waits: [0, 2]}\n";
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("commfuse-survivor-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(path) << text;
  const Outcome outcome = run_program("commfuse-sim schedule mutate " + path.string());
  EXPECT_EQ(outcome.code, 4);
  EXPECT_NE(outcome.out.find("doubling on 4 ranks, op 5 (elementwise): removed: survived\n"), std::string::npos)
      << outcome.out;
  std::filesystem::remove(path);
}

TEST(ScheduleMutate, UserErrorsExitWith2) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"--list som", "--list: unknown list 'som'; known lists: none, equivalent, survived, all"},
      {"-o csv", "--output: unknown format 'csv'; known formats: table, json"},
      {"absent.yaml", "absent.yaml: this file cannot be read; give the path of a schedule in YAML"},
      {"doubling --ranks 4", "--ranks chooses among generated schedules; remove it, or the file"},
      {"--strategy serail", "--strategy: unknown strategy 'serail'; did you mean 'serial'?"},
  };
  for (const auto& [arguments, message] : mistakes) {
    const Outcome outcome = run_program(std::string("commfuse-sim schedule mutate ") + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.err, std::string(message) + "\n");
    EXPECT_EQ(outcome.out, "");
  }
}

}  // namespace
}  // namespace commfuse::test
