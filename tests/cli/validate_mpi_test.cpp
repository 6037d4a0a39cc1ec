// SPDX-License-Identifier: Apache-2.0
// commfuse-validate under mpirun, as a person meets it: one voice, one exit code, and an end also when a process is
// lost.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/mpirun.h"

namespace commfuse {
namespace {

using test::mpirun;
using test::Outcome;
using test::run_program;

class UnderMpirun : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::has_mpi()) {
      GTEST_SKIP() << "this build has no MPI, or this machine no mpirun";
    }
  }
};

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++found;
  }
  return found;
}

TEST_F(UnderMpirun, CheckTakesProcessesAsRanksAndSpeaksOnce) {
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

TEST_F(UnderMpirun, ProcessesComparesAsManyElementsAsThreads) {
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
  EXPECT_NE(outcome.out.find("\n2 schedules right on mpi: "), std::string::npos) << outcome.out;
}

TEST_F(UnderMpirun, MistakesAreToldOnce) {
  const Outcome few = run_program(mpirun(2, "-q") + "commfuse-validate check --ranks 2,3");
  EXPECT_EQ(few.code, 2);
  EXPECT_EQ(few.out, "");
  EXPECT_EQ(few.err, "3 ranks need 3 processes, but there are 2; start more, as in mpirun -np 3\n");
  const Outcome typo = run_program(mpirun(3, "-q") + "commfuse-validate check --rank 3");
  EXPECT_EQ(typo.code, 2);
  EXPECT_EQ(typo.err, "unknown flag '--rank'; did you mean '--ranks'?\n");
  const Outcome help = run_program(mpirun(2) + "commfuse-validate check --help");
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(count(help.out, "Exit codes: "), 1U);
}

TEST_F(UnderMpirun, OtherExecutorsRunOnOneProcess) {
  const Outcome outcome = run_program(
      mpirun(2) + "commfuse-validate check --executor reference --ranks 3 --scope ag_gemm --strategy serial");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(count(outcome.out, "1 schedules right: "), 1U) << outcome.out;
}

TEST_F(UnderMpirun, AKilledProcessEndsAllWithOneMessage) {
  const Outcome outcome = test::run_and_disturb(3, "commfuse-validate check --long", 1, SIGKILL);
  EXPECT_NE(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(count(outcome.err, "process rank 1 "), 1U) << outcome.err;
  EXPECT_EQ(count(outcome.err, "signal 9"), 1U) << outcome.err;
}

TEST_F(UnderMpirun, AProcessThatHangsEndsAllAfterTheirPatience) {
  const Outcome outcome = test::run_and_disturb(3, "commfuse-validate check --long --patience 1s", 2, SIGSTOP);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err.rfind("no op has ended for 1 s: process 2 does not answer", 0), 0U) << outcome.err;
  EXPECT_EQ(count(outcome.err, "no op has ended"), 1U) << outcome.err;
}

TEST(ValidateCheck, ProcessesWantToBeStarted) {
  const Outcome outcome = run_program("commfuse-validate check --executor mpi");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "--executor mpi runs ranks as processes; start them, as in mpirun -np 4 commfuse-validate check\n");
  EXPECT_EQ(run_program("commfuse-validate check --patience soon").code, 2);
}

}  // namespace
}  // namespace commfuse
