// SPDX-License-Identifier: Apache-2.0
// commfuse-validate bench and calibrate as a person meets them: what is refused before anything is measured.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "model/record/run_record.h"
#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse {
namespace {

using test::Outcome;
using test::run_program;

std::string refusal(const std::string& arguments) {
  const Outcome outcome = run_program("commfuse-validate " + arguments);
  EXPECT_EQ(outcome.code, 2) << arguments;
  EXPECT_EQ(outcome.out, "") << arguments;
  return outcome.err;
}

TEST(ValidateBench, FlagsThatMakeNoSenseAreRefused) {
  EXPECT_NE(refusal("bench --ranks 0").find("--ranks: '0' is no whole number from 1 to 16"), std::string::npos);
  EXPECT_NE(refusal("bench --dtype bf16,fp8").find("--dtype: there is no 'fp8' here"), std::string::npos);
  EXPECT_NE(refusal("bench --executor gpu").find("--executor"), std::string::npos);
  EXPECT_NE(refusal("bench --link-latency 5us").find("--link-bandwidth"), std::string::npos);
}

TEST(ValidateCalibrate, NothingIsMeasuredForAFileThatCannotBeWritten) {
  const OwnFolder folder;
  std::ofstream("there.yaml") << "mine";
  EXPECT_NE(refusal("calibrate --out there.yaml").find("there.yaml is there already"), std::string::npos);
  EXPECT_NE(refusal("calibrate --out 'My CPU.yaml'").find("is no name of a machine"), std::string::npos);
  EXPECT_NE(refusal("calibrate --base h100-sxm --out mine.yaml").find("h100-sxm is no machine of the executor cpu"),
            std::string::npos);
}

TEST(ValidateCompare, ARecordOfMicroBenchmarksIsNothingToCompare) {
  const OwnFolder folder;
  RunRecord record{.executor = "cpu"};
  record.micro_benchmarks.push_back({.op = "wake", .samples = {Duration(1)}});
  std::ofstream("bench.json") << to_json(record);
  EXPECT_NE(refusal("compare bench.json").find("bench.json: no schedule was run"), std::string::npos);
}

TEST(ValidateRun, AMachineOfAnExecutorDoesTheRealThingAndSaysWhatItChose) {
  const OwnFolder folder;
  const Outcome run = run_program(
      "commfuse-validate run --hardware cpu --seq 16 --strategy serial --iterations 1 --warm-up 0 --out r.json");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.err.find("cpu does the real thing; what nobody chose: model gpt-2-xl, ranks 2, scope gate_up"),
            std::string::npos)
      << run.err;
  EXPECT_EQ(load_run_record("r.json").compute, "real");
}

}  // namespace
}  // namespace commfuse
