// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "tests/cli/program.h"

namespace commfuse::test {
namespace {

TEST(CommfuseSimWhy, BreaksDownTheFastestAndNamesItsRivals) {
  const Outcome outcome = run_program("commfuse-sim why --seq 2K --ranks 8");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("sure)"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("\nSensitivity: a parameter"), std::string::npos);
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(CommfuseSimWhy, ResultIsTheRowOfRun) {
  const Outcome why = run_program("commfuse-sim why --seq 8K --strategy serial -o json");
  const Outcome run = run_program("commfuse-sim run --seq 8K --strategy serial -o jsonl");
  ASSERT_EQ(why.code, 0) << why.err;
  ASSERT_EQ(run.code, 0) << run.err;
  nlohmann::json row = nlohmann::json::parse(run.out);
  row.erase("verdict");  // The verdict is about several rows.
  EXPECT_EQ(nlohmann::json::parse(why.out)["result"], row);
}

TEST(CommfuseSimWhy, ExplainsTheOnlyImplementationEvenIfItLoses) {
  for (const auto& [implementation, rest] :
       {std::pair("te", " --scope out_proj --seq 8K"), {"flux", " --scope down"}}) {
    const Outcome outcome = run_program(std::string("commfuse-sim why --as ") + implementation + rest);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find(std::string("\n") + implementation + " takes "), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find(" more time than serial "), std::string::npos) << outcome.out;
  }
  // A chosen strategy competes with the implementation.
  const Outcome both = run_program("commfuse-sim why --as flux --strategy serial --scope down");
  ASSERT_EQ(both.code, 0) << both.err;
  EXPECT_NE(both.out.find("\nserial takes "), std::string::npos) << both.out;
}

TEST(CommfuseSimWhy, ANumberOfParametersIsAWholeNumber) {
  for (const std::string text : {"-1", "1.5", "many"}) {
    const Outcome outcome = run_program("commfuse-sim why --seq 2K --ranks 2 --most " + text);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err, "--most: '" + text + "' is not a number of parameters; write a whole number, 0 or more\n");
  }
}

TEST(CommfuseSimWhy, HasOnlyFlagsThatLayersUse) {
  const std::string help = run_program("commfuse-sim why --help-all").out;
  EXPECT_NE(help.find("\n  --strategy "), std::string::npos) << help;
  EXPECT_EQ(help.find("\n  --pipeline "), std::string::npos) << help;
}

TEST(CommfuseSimWhy, RefusesWholeModels) {
  const Outcome outcome = run_program("commfuse-sim why --scope step");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("scope step is a whole model"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace commfuse::test
