// SPDX-License-Identifier: Apache-2.0
// Tests commfuse-validate bench, links and calibrate as a person uses them: refusals before anything is measured, and
// their records.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "model/record/run_record.h"
#include "tests/cli/program.h"
#include "tests/cli/validate_program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

TEST(ValidateBench, FlagsThatMakeNoSenseAreRefused) {
  EXPECT_NE(refusal("bench --ranks 0").find("--ranks: '0' is not a whole number from 1 to 16"), std::string::npos);
  EXPECT_NE(refusal("bench --dtype bf16,fp8").find("--dtype: 'fp8' is not available"), std::string::npos);
  EXPECT_NE(refusal("bench --executor gpu").find("--executor"), std::string::npos);
  EXPECT_EQ(refusal("bench --link-latency 5us"), "--link-latency requires --link-bandwidth; add it, as in '2 GB/s'\n");
  EXPECT_EQ(refusal("bench --ranks 1 --only messages,neighbours"),
            "--only messages,neighbours: messages need at least two ranks; raise --ranks, or time other ops\n");
}

TEST(ValidateCalibrate, MeasuresNothingForAnUnwritableFile) {
  const OwnFolder folder;
  std::ofstream("there.yaml") << "mine";
  EXPECT_NE(refusal("calibrate --out there.yaml").find("there.yaml already exists"), std::string::npos);
  EXPECT_NE(refusal("calibrate --out 'My CPU.yaml'").find("is not a machine name"), std::string::npos);
  EXPECT_NE(refusal("calibrate --base h100-sxm --out mine.yaml").find("h100-sxm is not a machine of --executor cpu"),
            std::string::npos);
}

TEST(ValidateBench, APathThatCannotBeWrittenIsRefusedBeforeMeasuring) {
  const OwnFolder folder;
  // Each command's other mistake would be found only when the measurement begins.
  const std::string refused = " cannot be written: folder nowhere does not exist; create it or choose another path\n";
  EXPECT_EQ(refusal("bench --dtype fp8 --out nowhere/b.json"), "nowhere/b.json" + refused);
  EXPECT_EQ(refusal("links --collectives many --out nowhere/l.json"), "nowhere/l.json" + refused);
  EXPECT_EQ(refusal("calibrate --dtype fp8 --out nowhere/m.yaml"), "nowhere/m.yaml" + refused);
  EXPECT_EQ(refusal("calibrate --dtype fp8 --out m.yaml --record nowhere/r.json"), "nowhere/r.json" + refused);
  EXPECT_EQ(refusal("run --dilation 0 --out nowhere/r.json"), "nowhere/r.json" + refused);
  EXPECT_EQ(refusal("compare --dilation 0 --page nowhere/p.html"), "nowhere/p.html" + refused);
  EXPECT_EQ(refusal("probe --out nowhere/p.csv"), "nowhere/p.csv" + refused);
}

TEST(ValidateCalibrate, RefusesExecutorsOfProcessesAndARecordInItsOwnPlace) {
  const OwnFolder folder;
  EXPECT_EQ(refusal("calibrate --executor nccl --out mine.yaml"),
            "--executor nccl: calibrate runs in one process; choose cpu or cuda-virtual, or give a record of bench "
            "--out to commfuse-sim calibrate\n");
  EXPECT_EQ(refusal("calibrate --out mine.yaml --record ./mine.yaml"),
            "--record: ./mine.yaml is also --out; choose another file\n");
}

TEST(ValidateLinks, FlagsThatMakeNoSenseAreRefused) {
  EXPECT_NE(refusal("links --ranks 1").find("--ranks: '1' is not a whole number from 2 to 16"), std::string::npos);
  EXPECT_NE(refusal("links --bytes 100").find("--bytes: '100' is not a multiple of 512 bytes"), std::string::npos);
  EXPECT_NE(refusal("links --tolerance little").find("--tolerance: 'little' is not a percentage"), std::string::npos);
  EXPECT_EQ(refusal("links --false-alarms 2%"),
            "--false-alarms: requires --expect; add --expect, or remove --false-alarms\n");
  // Refused before anything is measured.
  EXPECT_EQ(refusal("links --expect dgx-h10").rfind("unknown hardware 'dgx-h10'", 0), 0U);
  EXPECT_EQ(refusal("links --expect h100-sxm --false-alarms 60%"),
            "--false-alarms: '60%' is not a share of 0.0001% to 25%; write one, as in 1%\n");
}

TEST(ValidateLinks, NamesOutliersOfARecordAndExitsAccordingly) {
  const OwnFolder folder;
  RunRecord record{.executor = "cpu"};
  record.noise = {.stated = Duration(1000), .samples = {Duration(1000)}};
  std::ofstream("bench.json") << to_json(record);
  EXPECT_NE(refusal("links bench.json").find("bench.json: no link was measured"), std::string::npos);
  for (const std::int64_t rank : {0, 1, 2}) {
    record.micro_benchmarks.push_back({.op = "product",
                                       .m = 1,
                                       .n = 1,
                                       .k = 1,
                                       .ranks = 3,
                                       .rank = rank,
                                       .samples = std::vector<Duration>(9, Duration(rank == 1 ? 1500 : 1000))});
  }
  std::ofstream("links.json") << to_json(record);
  const Outcome off = run_program("commfuse-validate links links.json");
  EXPECT_EQ(off.code, 4) << off.err;
  EXPECT_NE(off.out.find("  rank 1: GEMMs of 1 x 1 x 1 take 1.50 times as long as usual (1.50 to 1.50)\n"),
            std::string::npos)
      << off.out;
  EXPECT_EQ(run_program("commfuse-validate links links.json --tolerance 50").code, 0);
}

TEST(ValidateCompare, ARecordOfMicroBenchmarksCannotBeCompared) {
  const OwnFolder folder;
  RunRecord record{.executor = "cpu"};
  record.micro_benchmarks.push_back({.op = "wake", .samples = {Duration(1)}});
  std::ofstream("bench.json") << to_json(record);
  EXPECT_NE(refusal("compare bench.json").find("bench.json: the record holds no schedule"), std::string::npos);
}

TEST(ValidateRun, TheMachineOfAnExecutorRunsForRealAndStatesItsChoices) {
  const OwnFolder folder;
  const Outcome run = run_program(
      "commfuse-validate run --hardware cpu --seq 16 --strategy serial --iterations 1 --warm-up 0 --out r.json");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.err.find("cpu runs in real time; settings not given: model gpt-2-xl, ranks 2, scope gate_up"),
            std::string::npos)
      << run.err;
  EXPECT_EQ(load_run_record("r.json").compute, "real");
}

}  // namespace
}  // namespace commfuse::test
