// SPDX-License-Identifier: Apache-2.0
// Tests commfuse-sim config, and every way in which settings reach `run`.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/config/field.h"
#include "tests/cli/program.h"

namespace commfuse::test {
namespace {

TEST(CommfuseSimConfig, ShowNamesTheOriginOfEachValue) {
  const auto path = std::filesystem::temp_directory_path() / ("commfuse-show-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(path) << "batch: 2\nseq: 16K\n";
  const Outcome outcome = run_program("COMMFUSE_SEQ=8K commfuse-sim config show --origin --config " + path.string() +
                                      " --set strategy.slices=2 --ranks 4");
  std::filesystem::remove(path);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const std::string& line :
       {std::string("schema: commfuse.run/1\n"), "batch: 2                   # " + path.string() + ":1:8\n",
        std::string("seq: 8K                    # COMMFUSE_SEQ\n"),
        std::string("ranks: 4                   # --ranks\n"),
        std::string("  slices: 2                  # --set strategy.slices=2\n"),
        std::string("dtype: bf16                # default\n")}) {
    EXPECT_NE(outcome.out.find(line), std::string::npos) << line << outcome.out;
  }
}

TEST(CommfuseSimConfig, ShowPrintsAValidConfig) {
  const auto path = std::filesystem::temp_directory_path() / ("commfuse-shown-" + std::to_string(getpid()) + ".yaml");
  const std::string flags = " --seq 8K --strategy sliced,serial --slices 2 --launch graph";
  std::ofstream(path) << run_program("commfuse-sim config show" + flags).out;
  const Outcome from_file = run_program("commfuse-sim run -o csv --config " + path.string());
  std::filesystem::remove(path);
  EXPECT_EQ(from_file.err, "");
  EXPECT_EQ(from_file.out, run_program("commfuse-sim run -o csv" + flags).out);
}

TEST(CommfuseSimConfig, ExplainCoversEverySetting) {
  const Outcome list = run_program("commfuse-sim config explain");
  EXPECT_EQ(list.code, 0);
  for (const Field& field : run_fields()) {
    EXPECT_NE(list.out.find(std::string(field.key) + " "), std::string::npos) << field.key;
    const Outcome explanation = run_program("commfuse-sim config explain " + std::string(field.key));
    EXPECT_EQ(explanation.code, 0);
    EXPECT_NE(explanation.out.find(variable_of(field)), std::string::npos) << explanation.out;
  }
  EXPECT_EQ(run_program("commfuse-sim config explain strategy.slices").out,
            "strategy.slices\n"
            "  sliced: number of slices k; default: the best of 2, 4, 8\n\n"
            "  value        a whole number of slices from 1 to 1K\n"
            "  default      left open\n"
            "  in a file    strategy: {slices: 4}\n"
            "  flag         --slices\n"
            "  variable     COMMFUSE_STRATEGY_SLICES\n"
            "  --set        strategy.slices=4\n"
            "  --axis       strategy.slices=4\n");
  const Outcome wrong = run_program("commfuse-sim config explain slices");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_EQ(wrong.err, "unknown setting 'slices'; did you mean 'strategy.slices'?\n");
}

TEST(CommfuseSimConfig, EveryWayToSetAValueGivesTheSameResult) {
  const Outcome flag = run_program("commfuse-sim run -o csv --seq 8K --strategy sliced --slices 2");
  ASSERT_EQ(flag.code, 0) << flag.err;
  EXPECT_EQ(run_program("commfuse-sim run -o csv --set seq=8K --set strategy.name=sliced --set strategy.slices=2").out,
            flag.out);
  EXPECT_EQ(run_program("COMMFUSE_SEQ=8K COMMFUSE_STRATEGY_NAME=sliced COMMFUSE_STRATEGY_SLICES=2 commfuse-sim run -o "
                        "csv")
                .out,
            flag.out);
  EXPECT_EQ(
      run_program("commfuse-sim run -o csv --axis seq=8K --axis strategy.name=sliced --axis strategy.slices=2").out,
      flag.out);
}

TEST(CommfuseSimConfig, VariablesThatACommandCannotUseAreIgnoredWithANote) {
  const std::string plain_step = "commfuse-sim run --scope step --model llama-3.1-8b --batch 8 -o csv";
  struct Run {
    std::string variables, command, note;
  };
  for (const Run& run :
       {Run{"COMMFUSE_PRICE=3", plain_step, "COMMFUSE_PRICE is ignored; scope step does not support 'price'"},
        Run{"COMMFUSE_PARALLEL_DATA=4", "commfuse-sim run -o csv",
            "COMMFUSE_PARALLEL_DATA is ignored; scope mlp does not support 'parallel.data'"},
        Run{"COMMFUSE_FRAMEWORK=torchtitan", "commfuse-sim run --scope prefill -o csv",
            "COMMFUSE_FRAMEWORK is ignored; scope prefill does not support 'framework'"},
        Run{"COMMFUSE_STRATEGY_SLICES=4", "commfuse-sim schedule show --strategy commfuse",
            "COMMFUSE_STRATEGY_SLICES is ignored; strategy commfuse does not use 'strategy.slices'"},
        Run{"COMMFUSE_PRICE=3", "commfuse-sim why --strategy commfuse",
            "COMMFUSE_PRICE is ignored; scope mlp does not support 'price'"},
        Run{"COMMFUSE_INTERFERENCE=none", "commfuse-sim expect --hardware h100-sxm --scope step -o csv",
            "COMMFUSE_INTERFERENCE is ignored; scope step does not support 'interference'"},
        Run{"COMMFUSE_DTYPE=fp16", "commfuse-sim run " + std::string(COMMFUSE_SOURCE_DIR) + "/configs/lab/fa.yaml",
            "COMMFUSE_DTYPE is ignored; a lab workload does not use 'dtype'"},
        Run{"COMMFUSE_LAUNCH=graph", "commfuse-sim tune --model llama-3.1-8b --gpus 8 --batch 64 -o json",
            "COMMFUSE_LAUNCH is ignored; tune does not use 'launch'"}}) {
    const Outcome plain = run_program(run.command);
    ASSERT_EQ(plain.code, 0) << run.command << plain.err;
    const Outcome with_variable = run_program(run.variables + " " + run.command);
    EXPECT_EQ(with_variable.code, 0) << run.command << with_variable.err;
    EXPECT_EQ(with_variable.out, plain.out) << run.command;
    EXPECT_EQ(with_variable.err, "note: " + run.note + "\n" + plain.err) << run.command;
  }
  EXPECT_EQ(run_program("commfuse-sim run --scope prefill --framework torchtitan").err,
            "--framework: scope prefill does not support 'framework'; remove it, or choose scope step\n");
}

TEST(CommfuseSimConfig, SeedsAndSamplesWithoutJitterAreNoted) {
  const std::string remedy = " has no effect without jitter; add --jitter default, or remove this setting\n";
  const std::string serial = " --ranks 2 --seq 1K --strategy serial";
  EXPECT_EQ(run_program("commfuse-sim run --samples 10 --seed 4" + serial).err,
            "note: --samples" + remedy + "note: --seed" + remedy);
  EXPECT_EQ(run_program("commfuse-sim run --samples 10 --seed 4 --jitter default" + serial).err, "");
  EXPECT_EQ(run_program("commfuse-sim why --seed 4" + serial).err, "note: --seed" + remedy);
  EXPECT_EQ(run_program("commfuse-sim expect --hardware h100-sxm --scope mlp --set seed=4").err,
            "note: --set seed=4" + remedy);
  EXPECT_EQ(run_program("commfuse-sim tune --model llama-3.1-8b --gpus 8 --batch 64 --ranks 8 --seed 4").err,
            "note: --seed" + remedy);
  const std::string lab = "commfuse-sim run " + std::string(COMMFUSE_SOURCE_DIR) + "/configs/lab/fa.yaml --ranks 2 ";
  EXPECT_EQ(run_program(lab + "--samples 10").err, "note: --samples" + remedy);
  EXPECT_EQ(run_program(lab + "--seed 4").err, "") << "its sizes may be random";
}

TEST(CommfuseSimConfig, MistakesFromEverySourceAreReportedTogether) {
  const Outcome outcome = run_program("COMMFUSE_SHEQ=1 commfuse-sim run --set sqe=1 --dtype x --axis seq=");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            "unknown environment variable 'COMMFUSE_SHEQ'; did you mean 'COMMFUSE_SEQ'?\n"
            "--set sqe=1: unknown setting 'sqe'; did you mean 'seq'?\n"
            "--dtype: unknown dtype 'x'; known dtypes: bf16, fp16, fp32, fp8\n"
            "--axis seq=: '' is not a whole number; write one, such as 4K\n");
}

TEST(CommfuseSimConfig, RequiresASubcommand) {
  const Outcome outcome = run_program("commfuse-sim config");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "A subcommand is required; see commfuse-sim config --help\n");
  EXPECT_EQ(run_program("commfuse-sim config shwo").err, "unknown command 'shwo'; did you mean 'show'?\n");
}

}  // namespace
}  // namespace commfuse::test
