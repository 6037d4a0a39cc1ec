// SPDX-License-Identifier: Apache-2.0
// Tests commfuse-validate under mpirun, as a person uses it: a single output, a single exit code, and an exit even if
// a process is lost.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "model/record/run_record.h"
#include "tests/cli/mpirun.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

class UnderMpirun : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_mpi()) {
      GTEST_SKIP() << "this build has no MPI, or mpirun is not installed";
    }
  }
};

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t occurrences = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++occurrences;
  }
  return occurrences;
}

TEST_F(UnderMpirun, CheckRunsOneProcessPerRankAndPrintsOnce) {
  const Outcome outcome = run_program(
      mpirun(4) + "commfuse-validate check --scope ag_gemm,gemm_rs,ulysses --strategy serial,async_tp -o json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const auto rows = nlohmann::json::parse(outcome.out);
  EXPECT_GT(rows.size(), 4U);
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("executor"), "mpi");
    EXPECT_EQ(row.at("ranks"), 4);
    EXPECT_EQ(row.at("ok"), true);
    for (const char* level : {"moved", "same_order", "integer", "bound"}) {
      EXPECT_EQ(row.at(std::string(level) + "_wrong"), 0);
    }
  }
}

TEST_F(UnderMpirun, PartitionsOfAGpuAreRefusedWhereEachRankHasOne) {
  const Outcome outcome = run_program(mpirun(2) + "commfuse-validate run --executor nccl --partition 16");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("--partition requires cuda-virtual; with nccl, use --multiprocessors to leave SMs free"),
            std::string::npos)
      << outcome.err;
}

TEST_F(UnderMpirun, ProcessesCompareAsManyElementsAsThreads) {
  const std::string check = "commfuse-validate check --scope gemm_rs --strategy commfuse --ranks 2 -o csv --executor ";
  const Outcome processes = run_program(mpirun(2) + check + "mpi");
  std::string threads = run_program(check + "cpu").out;
  for (std::size_t at = threads.find(",cpu,"); at != std::string::npos; at = threads.find(",cpu,", at)) {
    threads.replace(at, 5, ",mpi,");
  }
  EXPECT_EQ(processes.out, threads);
}

TEST_F(UnderMpirun, SpareProcessesAreIdle) {
  const Outcome outcome =
      run_program(mpirun(3) + "commfuse-validate check --ranks 1,2 --scope ag_gemm --strategy serial");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\n2 schedules correct on mpi: "), std::string::npos) << outcome.out;
}

TEST_F(UnderMpirun, MistakesAreReportedOnce) {
  const Outcome few = run_program(mpirun(2, "-q") + "commfuse-validate check --ranks 2,3");
  EXPECT_EQ(few.code, 2);
  EXPECT_EQ(few.out, "");
  EXPECT_EQ(few.err, "3 ranks need 3 processes, but there are 2; start more, as in mpirun -np 3\n");
  const Outcome typo = run_program(mpirun(3, "-q") + "commfuse-validate check --rank 3");
  EXPECT_EQ(typo.code, 2);
  EXPECT_EQ(typo.err, "unknown flag '--rank'; did you mean '--ranks'?\n");
  const Outcome help = run_program(mpirun(2) + "commfuse-validate check --help-all");
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(count(help.out, "Exit codes: "), 1U);
}

TEST_F(UnderMpirun, ProcessesOfAnotherMpiAreReportedOnce) {
  const Outcome outcome = run_program("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 " + mpirun_environment +
                                      "commfuse-validate check --scope mlp");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err.rfind("2 processes were started, but Open MPI v", 0), 0U) << outcome.err;
  EXPECT_EQ(count(outcome.err, "\n"), 1U) << outcome.err;
}

TEST_F(UnderMpirun, OtherExecutorsRunOnOneProcess) {
  const Outcome outcome = run_program(
      mpirun(2) + "commfuse-validate check --executor reference --ranks 3 --scope ag_gemm --strategy serial");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(count(outcome.out, "1 schedule correct: "), 1U) << outcome.out;
}

// Only the first process works, so it alone fails. If it started MPI to report that, it would wait for the others.
TEST_F(UnderMpirun, OtherExecutorsFailOnOneProcess) {
  const Outcome check = run_program(mpirun(2, "-q") + "commfuse-validate check --executor cpu missing.yaml");
  EXPECT_EQ(check.code, 2);
  EXPECT_EQ(check.out, "");
  EXPECT_NE(check.err.find("missing.yaml"), std::string::npos) << check.err;
  const Outcome run = run_program(mpirun(2, "-q") + "commfuse-validate run --executor cpu --hardware h100-sxn");
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find("h100-sxn"), std::string::npos) << run.err;
}

TEST_F(UnderMpirun, RunWritesARecordThatCompareReads) {
  const OwnFolder folder;
  const std::string command =
      "commfuse-validate run --model gpt-2-xl --seq 16 --scope gate_up --strategy serial,async_tp ";
  const Outcome run = run_program(mpirun(3) + command + "--ranks 2 --iterations 2 --warm-up 1 --spans --out r.json");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(count(run.out, "\nexecutor mpi, compute real, links mpi"), 1U) << run.out;
  const RunRecord record = load_run_record("r.json");
  EXPECT_EQ(record.executor, "mpi");
  EXPECT_EQ(record.environment.mpi.rfind("Open MPI v", 0), 0U) << record.environment.mpi;
  EXPECT_EQ(record.environment.hosts.size(), 2U);
  ASSERT_EQ(record.runs.size(), 2U);
  for (const MeasuredRun& measured : record.runs) {
    EXPECT_EQ(measured.status, RunStatus::done);
    EXPECT_EQ(measured.makespans.size(), 2U);
    EXPECT_EQ(measured.spans.front().rank, 0);
    EXPECT_EQ(measured.spans.back().rank, 1);
    ASSERT_EQ(measured.levels.size(), 5U);  // A gather cuts no sum, so T2 is checked too.
    for (const LevelResult& level : measured.levels) {
      EXPECT_EQ(level.wrong, 0) << level.level;
      EXPECT_GT(level.elements, 0) << level.level;
    }
  }
  const Outcome compare = run_program("commfuse-validate compare r.json -o json");
  EXPECT_EQ(compare.code, 0) << compare.err;
  EXPECT_EQ(nlohmann::json::parse(compare.out).size(), 2U);
}

TEST_F(UnderMpirun, LinksAreTimedBetweenProcesses) {
  const OwnFolder folder;
  const Outcome outcome =
      run_program(mpirun(3) + "commfuse-validate links --bytes '4 KiB' --tolerance 1000000 --out links.json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(count(outcome.out, "transfers of 4 KiB, us, from (down) to (right)"), 1U) << outcome.out;
  const RunRecord record = load_run_record("links.json");
  EXPECT_EQ(record.executor, "mpi");
  EXPECT_EQ(record.environment.hosts.size(), 3U);
  EXPECT_EQ(record.micro_benchmarks.size(), 6U + 3U);
  const Outcome alone = run_program(mpirun(1, "-q") + "commfuse-validate links");
  EXPECT_EQ(alone.code, 2);
  EXPECT_NE(alone.err.find("this command needs 2 ranks, but 1 process runs; start more"), std::string::npos)
      << alone.err;
}

TEST_F(UnderMpirun, TheExampleForRanksFitsTheProcesses) {
  const Outcome one_process = run_program(mpirun(1, "-q") + "commfuse-validate bench --ranks 2");
  EXPECT_EQ(one_process.code, 2);
  EXPECT_EQ(one_process.err, "--ranks: '2' is not a whole number from 1 to 1; write one, as in --ranks 1\n");
}

TEST_F(UnderMpirun, CalibrateRefusesProcesses) {
  const OwnFolder folder;
  const Outcome calibrate = run_program(mpirun(2, "-q") + "commfuse-validate calibrate --out mine.yaml");
  EXPECT_EQ(calibrate.code, 2);
  EXPECT_NE(calibrate.err.find("calibrate does not run under mpirun"), std::string::npos) << calibrate.err;
  EXPECT_FALSE(std::filesystem::exists("mine.yaml"));
}

TEST_F(UnderMpirun, RunRefusesNonsensicalFlags) {
  const Outcome few = run_program(mpirun(2, "-q") + "commfuse-validate run --ranks 4");
  EXPECT_EQ(few.code, 2);
  EXPECT_EQ(few.err, "4 ranks need 4 processes, but there are 2; start more, as in mpirun -np 4\n");
  const Outcome emulated = run_program(mpirun(2, "-q") + "commfuse-validate run --seq 1K --compute emulated");
  EXPECT_EQ(emulated.code, 2);
  EXPECT_EQ(count(emulated.err, "processes compute and send for real; "), 1U) << emulated.err;
}

TEST_F(UnderMpirun, AKilledProcessLeavesNoRecord) {
  const OwnFolder folder;
  const Outcome outcome = run_and_disturb(
      2, "commfuse-validate run --model gpt-2-xl --seq 64 --scope gate_up --iterations 1000 --out r.json", 1, SIGKILL);
  EXPECT_NE(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(count(outcome.err, "signal 9"), 1U) << outcome.err;
  EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::current_path()));
}

TEST_F(UnderMpirun, AKilledProcessEndsAllProcessesWithOneMessage) {
  const Outcome outcome = run_and_disturb(3, "commfuse-validate check --long", 1, SIGKILL);
  EXPECT_NE(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(count(outcome.err, "process rank 1 "), 1U) << outcome.err;
  EXPECT_EQ(count(outcome.err, "signal 9"), 1U) << outcome.err;
}

TEST_F(UnderMpirun, AProcessThatHangsEndsAllProcessesAfterTheTimeout) {
  const Outcome outcome = run_and_disturb(3, "commfuse-validate check --long --patience 5s", 2, SIGSTOP);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  // mpirun's own message about the end may come before or after ours.
  EXPECT_EQ(count(outcome.err, "no op has completed for 5 s: process 2 does not answer"), 1U) << outcome.err;
  EXPECT_EQ(count(outcome.err, "no op has completed"), 1U) << outcome.err;
}

TEST(ValidateCheck, ProcessesNeedALauncher) {
  const Outcome outcome = run_program("commfuse-validate check --executor mpi");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "--executor mpi runs ranks as processes; start them, as in mpirun -np 4 commfuse-validate check\n");
  EXPECT_EQ(run_program("commfuse-validate check --executor cpu --patience soon").code, 2);
}

}  // namespace
}  // namespace commfuse::test
