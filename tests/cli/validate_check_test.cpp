// SPDX-License-Identifier: Apache-2.0
// Tests commfuse-validate check as a person uses it: its output, its refusals, its exit codes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "model/build_info.h"
#include "model/strategies/scope.h"
#include "tests/cli/program.h"
#include "tests/cli/validate_program.h"
#include "tests/known.h"
#include "validate/reference/check_point.h"

namespace commfuse::test {
namespace {

TEST(ValidateCheck, ALimitOmitsSchedulesAndCountsThem) {
  const Outcome outcome = run_program("commfuse-validate check --scope mlp --ranks 4 -o csv --limit '1 ns'");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.out.rfind("schema,operation,", 0), 0U);  // The header is printed before the first schedule.
  EXPECT_NE(outcome.err.find("--limit 1 ns: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find(" schedules were not checked"), std::string::npos) << outcome.err;
}

TEST(ValidateCheck, ALimitLosesNoRowOfACheckedSchedule) {
  for (int attempt = 0; attempt < 5; ++attempt) {
    const Outcome outcome = run_program("commfuse-validate check --ranks 1..8 -o csv --limit '50 ms'");
    ASSERT_EQ(outcome.code, 3) << outcome.err;
    std::istringstream words(outcome.err);  // --limit 50 ms: 5000 of 5457 schedules were not checked
    std::string flag, limit, unit, skipped, of, schedules;
    words >> flag >> limit >> unit >> skipped >> of >> schedules;
    const auto rows = std::ranges::count(outcome.out, '\n') - 1;
    EXPECT_EQ(rows + std::stoll(skipped), std::stoll(schedules)) << outcome.err;
  }
}

TEST(ValidateCheck, ASingleOmittedScheduleIsSingular) {
  EXPECT_EQ(run_program("commfuse-validate check --strategy serial --scope gemm_rs --ranks 2 --limit '1 ns'").err,
            "--limit 1 ns: 1 of 1 schedule was not checked\n");
}

TEST(ValidateCheck, RefusesAStrategyWithoutAScheduleForTheScope) {
  EXPECT_EQ(refusal("check --strategy commfuse --scope mlp_ar --ranks 2"),
            "--strategy commfuse: no schedule for --scope mlp_ar and --ranks 2; choose other strategies or scopes\n");
}

TEST(ValidateCheck, ProvesAndRunsEverySchedule) {
  const Outcome outcome = run_program("commfuse-validate check --strategy all --ranks 1..4");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  std::size_t schedules = 0;
  for (const validate::CheckedOperation& operation : validate::checked_operations()) {
    for (std::int32_t ranks = 1; ranks <= 4; ++ranks) {
      for (const Strategy& strategy : strategies()) {
        schedules += schedules_to_prove(strategy, kinds_of(operation.operation), ranks).size();
      }
    }
  }
  EXPECT_GT(schedules, 500U);
  EXPECT_NE(outcome.out.find("\n" + std::to_string(schedules) + " schedules correct: "), std::string::npos)
      << outcome.out;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(ValidateCheck, ChoosesStrategiesRanksAndScope) {
  const Outcome outcome =
      run_program("commfuse-validate check --strategy serial,sliced --ranks 4,2 --scope gemm_rs --dtype fp32 -o csv");
  EXPECT_EQ(outcome.code, 0);
  std::istringstream lines(outcome.out);
  std::string line;
  std::string rows;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    rows +=
        line.substr(0, line.find(",,", line.find("sliced,,") == std::string::npos ? 0 : line.find("sliced,,") + 8)) +
        "\n";
  }
  std::string expected;
  for (const char* ranks : {"4", "2"}) {
    expected += std::string("commfuse.check/1,gemm_rs,") + ranks + ",fp32,1,serial\n";
    // With two or more slices, the order is first strided, then copied.
    for (const char* schedule : {"1", "2", "2", "4", "4", "8", "8"}) {
      expected += std::string("commfuse.check/1,gemm_rs,") + ranks + ",fp32,1,sliced,," + schedule + "\n";
    }
  }
  EXPECT_EQ(rows, expected);
}

TEST(ValidateCheck, RequiresEqualBitsWhereNoSumIsCut) {
  const Outcome outcome =
      run_program("commfuse-validate check --strategy commfuse --ranks 4 --scope ag_gemm,gemm_rs -o json");
  EXPECT_EQ(outcome.code, 0);
  for (const auto& row : nlohmann::json::parse(outcome.out)) {
    const bool gathers = row.at("operation") == "ag_gemm";
    EXPECT_EQ(row.at("bitwise_elements").is_null(), !gathers);
    EXPECT_EQ(row.at("bitwise_wrong"), gathers ? nlohmann::json(0) : nlohmann::json());
  }
}

TEST(ValidateCheck, JsonHasOneObjectPerSchedule) {
  const Outcome outcome =
      run_program("commfuse-validate check --strategy sliced --ranks 3 --scope mlp --seed 9 -o json");
  EXPECT_EQ(outcome.code, 0);
  const auto rows = nlohmann::json::parse(outcome.out);
  // The activations are swiglu and gelu. Each has k = 1, and k = 2, 4 and 8 both strided and copied.
  ASSERT_EQ(rows.size(), 2U * 7U);
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("schema"), "commfuse.check/1");
    EXPECT_EQ(row.at("strategy"), "sliced");
    EXPECT_EQ(row.at("seed"), 9);
    EXPECT_EQ(row.at("ok"), true);
    EXPECT_EQ(row.at("integer_wrong"), 0);
    EXPECT_EQ(row.at("bound_wrong"), 0);
    EXPECT_LT(row.at("bound_worst"), 1.0);
    EXPECT_TRUE(row.at("form").is_null());
  }
  EXPECT_EQ(rows[6].at("slices"), 8);
  EXPECT_EQ(rows[6].at("shuffles"), "copied");
  EXPECT_EQ(rows[7].at("operation"), "mlp_gelu");
}

TEST(ValidateCheck, TheSameSeedGivesTheSameBytes) {
  const std::string command = "commfuse-validate check --ranks 2 --seed 5 -o json";
  const Outcome once = run_program(command);
  EXPECT_EQ(run_program(command).out, once.out);
  EXPECT_NE(run_program("commfuse-validate check --ranks 2 --seed 6 -o json").out, once.out);
}

TEST(ValidateCheck, UnknownWordsAreAnsweredWithTheNearestWord) {
  EXPECT_EQ(refusal("check --strategy comfuse"), "--strategy: unknown value 'comfuse'; did you mean 'commfuse'?\n");
  const std::string known = "known strategies: " + known_strategies() + ", all\n";
  EXPECT_EQ(refusal("check --strategy serial,x"), "--strategy: unknown value 'x'; " + known);
  EXPECT_EQ(refusal("check --strategy ''"), "--strategy: unknown value ''; " + known);
  EXPECT_EQ(refusal("check --strategy all,serial"),
            "--strategy: 'all' cannot be combined with other values; write --strategy all\n");
  EXPECT_EQ(refusal("check --scope mpl"), "--scope: unknown value 'mpl'; did you mean 'mlp'?\n");
  EXPECT_EQ(refusal("check --dtype fp8"), "--dtype: unknown value 'fp8'; known dtypes: bf16, fp16, fp32\n");
  EXPECT_EQ(refusal("check -o jsn"), "--output: unknown value 'jsn'; did you mean 'json'?\n");
  EXPECT_EQ(refusal("check --rank 4"), "unknown flag '--rank'; did you mean '--ranks'?\n");
}

TEST(ValidateCheck, HelpNamesTheScopesAndAScopeOfRunIsAnsweredWithThem) {
  EXPECT_NE(run_program("COLUMNS=80 commfuse-validate check --help")
                .out.find("\n  --scope TEXT=all            ag_gemm, gemm_rs, attention, mlp, layer, and more\n"),
            std::string::npos);
  const std::string help = run_program("COLUMNS=80 commfuse-validate check --help-all").out;
  for (const char* strategy : {"serial", "async_tp", "fused_kernel"}) {
    EXPECT_NE(help.find(strategy), std::string::npos) << strategy;
  }
  for (const validate::CheckedOperation& operation : validate::checked_operations()) {
    EXPECT_NE(help.find(operation.scope), std::string::npos) << operation.scope;
  }
  EXPECT_EQ(refusal("check --scope gate_up"),
            "--scope: check has no scope 'gate_up', but its schedules are those of ag_gemm; write ag_gemm\n");
  EXPECT_EQ(refusal("check --scope mlp,down_backward"),
            "--scope: check has no scope 'down_backward', but its schedules are those of gemm_rs_backward; write "
            "gemm_rs_backward\n");
  EXPECT_EQ(refusal("check --scope fsdp_gate_up"),
            "--scope: check has no scope 'fsdp_gate_up', but its schedules are those of weight_ag_gemm; write "
            "weight_ag_gemm\n");
}

TEST(ValidateCheck, NumbersOutOfRangeAreRefused) {
  const std::string write =
      " is not a whole number from 1 to 64; write a number, a list or a range, such as 4, 1..8 or 2,4,8\n";
  EXPECT_EQ(refusal("check --ranks 0..8"), "--ranks: 0 is out of range; write whole numbers from 1 to 64\n");
  EXPECT_EQ(refusal("check --ranks 65"), "--ranks: 65 is out of range; write whole numbers from 1 to 64\n");
  EXPECT_EQ(refusal("check --ranks 8..2"), "--ranks: '8..2' is descending; write 2..8\n");
  EXPECT_EQ(refusal("check --ranks -2"), "--ranks: '-2'" + write);
  EXPECT_EQ(refusal("check --ranks eight"), "--ranks: 'eight'" + write);
  EXPECT_EQ(refusal("check --seed -1"),
            "--seed: '-1' is not a whole number of at least 0; write one, as in --seed 1\n");
}

TEST(ValidateCheck, MistakesOfTheCommandLineParserExitWith2) {
  EXPECT_EQ(refusal("check --ranks"), "--ranks: 1 required TEXT missing; see commfuse-validate check --help\n");
  EXPECT_FALSE(refusal("check stray").empty());
  EXPECT_EQ(run_program("commfuse-validate").code, 2);
}

TEST(ValidateCheck, HelpShowsExamplesAndExitCodes) {
  const Outcome outcome = run_program("commfuse-validate check --help-all");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("\n  commfuse-validate check --strategy all --ranks 1..8\n"), std::string::npos);
  EXPECT_NE(outcome.out.find("Exit codes: 0 all schedules passed; 3 --limit skipped schedules; 4 a schedule\n"
                             "failed; 2 the input is wrong; 1 failed; 69 no GPU is available."),
            std::string::npos);
}

TEST(ValidateCheck, ThreadsGiveTheInterpretersBits) {
  const Outcome outcome = run_program(
      "commfuse-validate check --executor cpu --strategy commfuse,serial --ranks 2 --scope ag_gemm,gemm_rs "
      "--chaos 5 -o json");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  const auto rows = nlohmann::json::parse(outcome.out);
  EXPECT_GT(rows.size(), 8U);
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("executor"), "cpu");
    EXPECT_EQ(row.at("ok"), true);
    for (const char* level : {"moved", "same_order", "integer", "bound"}) {
      EXPECT_EQ(row.at(std::string(level) + "_wrong"), 0);
      EXPECT_GT(row.at(std::string(level) + "_elements"), 0);
    }
  }
  const Outcome table =
      run_program("commfuse-validate check --executor cpu --strategy serial --ranks 2 --scope ag_gemm");
  EXPECT_EQ(table.code, 0);
  EXPECT_NE(table.out.find("proof  T0     T1     T-int  T2     T3\n"), std::string::npos) << table.out;
}

TEST(ValidateCheck, ExecutorsAndSeedsAreChecked) {
  EXPECT_EQ(refusal("check --executor cpus"), "--executor: unknown value 'cpus'; did you mean 'cpu'?\n");
  EXPECT_EQ(refusal("check --executor cpu --chaos 0"),
            "--chaos: '0' is not a whole number of at least 1; write one, as in --chaos 1\n");
  for (const std::string flag : {"--chaos 3", "--patience 5s", "--long"}) {
    const std::string name = flag.substr(0, flag.find(' '));
    EXPECT_EQ(refusal("check " + flag), name + " needs an executor; add --executor cpu, or remove " + name + "\n");
  }
}

TEST(ValidateVersion, ListsTheLibrariesThatTheBuildFound) {
  const Outcome outcome = run_program("commfuse-validate version");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out.rfind("commfuse-validate " + std::string(build_info().version) + " (", 0), 0U) << outcome.out;
  for (const char* name : {"compiler", "build", "CUDA", "NCCL", "MPI"}) {
    EXPECT_NE(outcome.out.find(std::string{"\n"} + name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace commfuse::test
