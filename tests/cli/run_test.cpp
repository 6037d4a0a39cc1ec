// SPDX-License-Identifier: Apache-2.0
// Tests commfuse-sim as a person uses it: its output, its refusals, its exit codes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/program.h"
#include "tests/known.h"
#include "tests/texts.h"

namespace commfuse::test {
namespace {

using nlohmann::json;

struct Mistake {
  const char* arguments;
  const char* message;
};

TEST(RunImplementations, AsAllReportsScopesWithoutImplementations) {
  const Outcome backward = run_program("commfuse-sim run --scope down_backward --as all --uncertainty off");
  EXPECT_EQ(backward.err,
            "--as all: no implementation covers scope down_backward (all were measured in forward passes only); only "
            "ideal schedules are compared\n");
  EXPECT_EQ(run_program("commfuse-sim why --scope layer --as all").err,
            "--as all: no implementation covers scope layer; only ideal schedules are compared\n");
  EXPECT_EQ(run_program("commfuse-sim run --as all --uncertainty off").err, "");
  const Outcome grid = run_program(
      "commfuse-sim run --axis scope=mlp,layer --axis seq=1K,2K --axis ranks=2,4 --as all "
      "--uncertainty off");
  EXPECT_EQ(grid.err, "--as all: no implementation covers scope layer; only ideal schedules are compared\n");
}

TEST(RunImplementations, AsAllReportsMachinesWithoutImplementations) {
  EXPECT_EQ(run_program("commfuse-sim run --scope down --hardware mi300x --as all --uncertainty off").err,
            "--as all: no implementation runs down with 8 ranks on mi300x; only ideal schedules are compared\n");
}

TEST(CommfuseSimRun, EveryMistakeIsOneSentenceWithItsRemedyAndExitsWith2) {
  const std::string unknown = "unknown flag '--zzzzzzzz'; known flags: --help, --help-all, " + known_flags() +
                              ", --config, --set, --gpus, --schedule, --size, --measured-step, --measured-config, "
                              "--axis, --output, --trace, --figure, --plot";
  const std::string no_strategy = "--strategy: unknown strategy 'zzz'; known strategies: all, " + known_strategies();
  const Mistake mistakes[] = {
      {"run --sheq 8K", "unknown flag '--sheq'; did you mean '--seq'?"},
      {"run --zzzzzzzz", unknown.c_str()},
      {"rnu", "unknown command 'rnu'; did you mean 'run'?"},
      {"run extra", "extra: cannot be read (No such file or directory); check the path"},
      {"run --strategy comfuse", "--strategy: unknown strategy 'comfuse'; did you mean 'commfuse'?"},
      {"run --strategy zzz", no_strategy.c_str()},
      {"schedule check --strategy zzz", no_strategy.c_str()},
      {"run --scope mpl", "--scope: unknown scope 'mpl'; did you mean 'mlp'?"},
      {"run --ranks 0", "--ranks: '0' is out of range; choose 1 to 1M ranks"},
      {"run --seq=-4096", "--seq: '-4096' is out of range; choose 1 to 1G tokens"},
      {"run --ranks 3 --scope qkv",
       "8 kv heads of llama-3.1-70b cannot be split over 3 ranks; choose ranks that divide heads (64) and either "
       "divide kv heads (8) or are a multiple of them: 1, 2, 4, 8, 16, 32, 64"},
      {"run --ranks 16", "16 ranks do not fit h100-sxm, which has 8 GPUs; choose ranks up to 8"},
      {"run --axis ranks=8,16", "16 ranks do not fit h100-sxm, which has 8 GPUs; choose ranks up to 8"},
      {"run --network-bandwidth x2",
       "--network-bandwidth: h100-sxm is one node without a network; remove network_bandwidth, or choose hardware of "
       "several nodes"},
      {"run --link-bandwidth 9PB/s",
       "--link-bandwidth: '9PB/s' is not a bandwidth; write a factor from x0.001 to x1000, or a rate, "
       "as in 450GB/s"},
      {"run --link-bandwidth 900TB/s",
       "link_bandwidth is 900TB/s, and NVLink 4 on NVSwitch 3 has 450 GB/s: a link's rate may differ by a factor "
       "of at most 1000; choose a closer rate"},
      {"run --seq 1001",
       "1001 tokens (batch x sequence) cannot be split over 8 ranks; choose a multiple of 8, such as 1000 or 1008"},
      {"run --seq 1G --batch 4", "batch 4 times seq 1G is too large; the limit is 1G tokens"},
      {"run --dtype fp64", "--dtype: unknown dtype 'fp64'; known dtypes: bf16, fp16, fp32, fp8"},
      {"run --slices 0 --strategy sliced", "--slices: '0' is out of range; choose 1 to 1K slices"},
      {"run --slices 4 --strategy serial,commfuse",
       "strategy.slices is 4, but strategy serial,commfuse does not use it; remove it or add a strategy that does"},
      {"run --form ring --strategy serial",
       "strategy.form is ring, but strategy serial does not use it; remove it or add a strategy that does"},
      {"run -o jsn", "--output: unknown format 'jsn'; did you mean 'json'?"},
      {"run --axis seq=1K,2K --trace t.json",
       "--trace: requires a single point, but there are 2; choose one point, or remove --trace"},
      {"run --trace absent/t.json",
       "absent/t.json cannot be written: folder absent does not exist; create it or choose another path"},
      {"run -j x", "--threads: 'x' is not a whole number; write one, such as 4"},
      {"run --axis sqe=1K", "--axis sqe=1K: unknown setting 'sqe'; did you mean 'seq'?"},
      {"run --axis seq=8K..1K", "--axis seq=8K..1K: '8K..1K' is descending; write 1K..8K"},
      {"run --config absent.yaml", "absent.yaml: cannot be read (No such file or directory); check the path"},
  };
  for (const Mistake& mistake : mistakes) {
    const Outcome outcome = run_program(std::string("commfuse-sim ") + mistake.arguments);
    EXPECT_EQ(outcome.code, 2) << mistake.arguments;
    EXPECT_EQ(outcome.out, "") << mistake.arguments;
    EXPECT_EQ(outcome.err, std::string(mistake.message) + "\n") << mistake.arguments;
  }
}

TEST(CommfuseSimRun, StrategiesThatWereNotNamedAreLeftOutWhereTheyCannotRun) {
  const std::string point = " --scope down_ar --hardware b300-sxm --as vllm_gemm_ar --uncertainty off";
  const std::string reason =
      "4104 tokens cannot be cut into 16 equal blocks, as sliced (k=2) down_ar requires; choose a multiple of 16, such "
      "as 4096 or 4112\n";
  const Outcome outcome = run_program("commfuse-sim run --seq 4104 -o csv" + point);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "note: sliced is not compared: " + reason);
  EXPECT_EQ(outcome.out.find("sliced"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("vllm_gemm_ar"), std::string::npos) << outcome.out;
  const Outcome grid = run_program("commfuse-sim run --axis seq=4096,4104,4120" + point);
  EXPECT_EQ(grid.err, "note: sliced is not compared at 2 points: " + reason);
  EXPECT_EQ(run_program("commfuse-sim why --seq 4104" + point).err, outcome.err);
  const Outcome named = run_program("commfuse-sim run --seq 4104 --strategy serial,sliced" + point);
  EXPECT_EQ(named.code, 2);
  EXPECT_EQ(named.err, reason);
}

TEST(CommfuseSimRun, RefusesADrawingBelowMachineReadableOutput) {
  for (const std::string format : {"json", "jsonl", "csv"}) {
    // The command fails before it splits tokens over GPUs.
    const Outcome outcome = run_program("commfuse-sim run --plot --seq 1001 -o " + format);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "--plot requires -o table; remove --plot, or -o " + format + "\n");
  }
}

TEST(CommfuseSimRun, AMissingConfigFolderIsReportedOnce) {
  const Outcome outcome = run_program("env COMMFUSE_CONFIG_DIR=/nonexistent commfuse-sim run");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "COMMFUSE_CONFIG_DIR is '/nonexistent', which is not a folder; set it to the folder that holds models/ and "
            "hardware/, or unset it\n");
}

TEST(CommfuseSimRun, AnUnknownModelIsAnsweredWithTheNearestAndAllModels) {
  const Outcome outcome = run_program("commfuse-sim run --model llama-3.1-70");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err.find("--model: unknown model 'llama-3.1-70'; did you mean 'llama-3.1-70b'? known: "), 0U);
  EXPECT_NE(outcome.err.find("; a path contains '/' or ends in .yaml or .json\n"), std::string::npos);
}

TEST(CommfuseSimRun, ATraceHasAProcessForEachStrategyAndRank) {
  const auto path = std::filesystem::temp_directory_path() / ("commfuse-trace-" + std::to_string(getpid()) + ".json");
  const Outcome outcome =
      run_program("commfuse-sim run --ranks 2 --strategy serial,sliced,commfuse --trace " + path.string());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, run_program("commfuse-sim run --ranks 2 --strategy serial,sliced,commfuse").out);
  const json trace = json::parse(contents_of(path));
  std::filesystem::remove(path);
  std::set<int> processes;
  for (const json& event : trace.at("traceEvents")) {
    processes.insert(event.at("pid").get<int>());
  }
  EXPECT_EQ(processes, (std::set<int>{1, 2, 1001, 1002, 2001, 2002}));
}

TEST(CommfuseSimRun, ATraceShowsTheRunOfItsRowAlsoWhereRatesChange) {
  const auto path = std::filesystem::temp_directory_path() / ("commfuse-faults-" + std::to_string(getpid()) + ".json");
  const Outcome outcome = run_program(
      "commfuse-sim run --ranks 2 --strategy commfuse --faults slow-rank --interference dynamic -o json --trace " +
      path.string());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json trace = json::parse(contents_of(path));
  std::filesystem::remove(path);
  double last = 0.0;
  for (const json& event : trace.at("traceEvents")) {
    if (event.contains("dur")) {
      last = std::max(last, event.at("ts").get<double>() + event.at("dur").get<double>());
    }
  }
  EXPECT_NEAR(last, json::parse(outcome.out).at(0).at("makespan_us").get<double>(), 1e-3);
}

TEST(CommfuseSimRun, JitterPercentilesDoNotDependOnTheThreads) {
  const std::string command = "commfuse-sim run --axis seq=1K..8K --jitter default --samples 500 -o csv ";
  const Outcome outcome = run_program(command + "-j 1");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(run_program(command + "-j 4").out, outcome.out);
  EXPECT_NE(run_program(command + "--seed 2").out, outcome.out);
  const Outcome table = run_program("commfuse-sim run --strategy serial,commfuse --jitter default --samples 500");
  EXPECT_NE(table.out.find("\nUnder jitter 'default', 500 runs, seed 1\n"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("Lowest p99: commfuse"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("Causes of the p99"), std::string::npos) << table.out;
}

TEST(CommfuseSimRun, EvaluatorsAgreeAndSymmetryChangesNothing) {
  const std::string command = "commfuse-sim run --scope layer --variants all -o csv ";
  const auto without_evaluator = [](std::string text) {
    for (const char* word : {",engine,", ",replay,"}) {
      for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word)) {
        text.replace(at, 8, ",,");
      }
    }
    return text;
  };
  const std::string replayed = without_evaluator(run_program(command + "--evaluator replay").out);
  EXPECT_EQ(without_evaluator(run_program(command + "--evaluator engine").out), replayed);
  EXPECT_EQ(without_evaluator(run_program(command + "--symmetry off").out), replayed);
}

TEST(CommfuseSimRun, ALabWorkloadNamedByItsFileIsSimulated) {
  const std::string fa = COMMFUSE_SOURCE_DIR "/configs/lab/fa.yaml";
  EXPECT_EQ(run_program("commfuse-sim run " + fa + " --set ranks=256 --symmetry off -o json").out,
            R"([{"schema":"commfuse.lab_result/1","workload":"fa","ranks":256,"messages":65280,"tiles":65536,)"
            R"("makespan_ps":2560000000,"evaluator":"replay","one_rank_for_all":false}])"
            "\n");
  const Outcome sampled = run_program("commfuse-sim run " + fa + " --ranks 4 --jitter default --samples 400");
  EXPECT_NE(sampled.out.find("  p99 "), std::string::npos) << sampled.out;
  EXPECT_NE(sampled.out.find("too few samples"), std::string::npos) << sampled.out;  // The p99.9 has too few samples.
  const Outcome refused = run_program("commfuse-sim run " + fa + " --seq 8K");
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err, "--seq: a lab workload does not use this setting; remove it, or run without the file\n");
  for (const std::string flag : {"--size", "--measured-config"}) {
    EXPECT_EQ(run_program("commfuse-sim run " + fa + " " + flag + " a=3").err,
              flag + ": not available for lab workloads; remove it\n");
  }
}

TEST(CommfuseSimRun, ALabWorkloadOfOneRankAndOneSampleIsInTheSingular) {
  const Outcome outcome = run_program("commfuse-sim run " COMMFUSE_SOURCE_DIR
                                      "/configs/lab/fa.yaml --ranks 1 --jitter default --samples 1");
  EXPECT_EQ(outcome.out.rfind("fa: 1 rank, chunks of 32 KiB at 53.687 GB/s, 500 ns latency\n", 0), 0U) << outcome.out;
  EXPECT_NE(outcome.out.find("\n  1 run under jitter, us "), std::string::npos) << outcome.out;
}

TEST(CommfuseSimRun, AVerdictOfSeveralPointsNamesWhatDiffers) {
  const Outcome outcome = run_program(
      "commfuse-sim run --axis batch=1,2 --axis interference=static,none --strategy serial,commfuse -o verdict");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* name :
       {"batch 1, seq 4K, bf16", "batch 2, seq 4K, bf16", "bf16, interference none, launch stream"}) {
    EXPECT_NE(in_one_line(outcome.out).find(name), std::string::npos) << name << outcome.out;
  }
}

TEST(CommfuseSimRun, AnExportRefusesPricesThatChangeAtRunTime) {
  const Outcome outcome = run_program("commfuse-sim schedule export --strategy serial --interference dynamic -o goal");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "an export has one duration per op; remove faults, and choose --interference static or none\n");
}

TEST(CommfuseSimRun, TheLastOfARepeatedFlagWins) {
  EXPECT_EQ(run_program("commfuse-sim run -o csv --seq 4K --seq 8K").out,
            run_program("commfuse-sim run -o csv --seq 8K").out);
}

TEST(CommfuseSimRun, JsonIsAnArrayWithOneObjectPerStrategy) {
  const Outcome outcome = run_program(
      "commfuse-sim run --model llama-3.1-70b --hardware h100-sxm --ranks 8 --seq 32768 --scope mlp --strategy all -o "
      "json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const json rows = json::parse(outcome.out);
  std::map<std::string, json> by_strategy;
  for (const json& row : rows) {
    by_strategy.emplace(row.at("strategy"), row);
    EXPECT_EQ(row.at("schema"), "commfuse.result/2");
    for (const char* key : {"makespan_us", "compute_us", "slicing_us", "local_us", "exposed_us", "head_us", "bubble_us",
                            "tail_us", "mfu", "stretch_us", "ideal_us", "link_us"}) {
      EXPECT_TRUE(row.at(key).is_number()) << key;
    }
    EXPECT_NEAR(row.at("makespan_us").get<double>(),
                row.at("compute_us").get<double>() + row.at("slicing_us").get<double>() +
                    row.at("stretch_us").get<double>() + row.at("local_us").get<double>() +
                    row.at("exposed_us").get<double>(),
                1e-6);
    EXPECT_EQ(row.at("schedule_sha256").get<std::string>().size(), 64U);
  }
  EXPECT_EQ(by_strategy.size(), rows.size());
  const json& serial = by_strategy.at("serial");
  const json& sliced = by_strategy.at("sliced");
  const json& commfuse = by_strategy.at("commfuse");
  EXPECT_EQ(rows[0], serial);
  EXPECT_TRUE(serial.at("slices").is_null());
  EXPECT_TRUE(sliced.at("slices").is_number_integer());
  EXPECT_GT(serial.at("makespan_us"), sliced.at("makespan_us"));
  EXPECT_GT(sliced.at("makespan_us"), commfuse.at("makespan_us"));
  for (const auto& [strategy, row] : by_strategy) {
    EXPECT_LE(by_strategy.at("fused_kernel").at("makespan_us"), row.at("makespan_us")) << strategy;
  }
}

TEST(CommfuseSimRun, AtEightThousandTokensSerialIsSlowestAndTheOthersAreClose) {
  const Outcome outcome =
      run_program("commfuse-sim run --ranks 8 --seq 8192 --scope mlp --strategy serial,sliced,commfuse -o json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json rows = json::parse(outcome.out);
  const double serial = rows[0].at("makespan_us");
  const double sliced = rows[1].at("makespan_us");
  const double commfuse = rows[2].at("makespan_us");
  EXPECT_GT(serial, sliced);
  EXPECT_GT(serial, commfuse);
  EXPECT_LT(std::max(sliced, commfuse) / std::min(sliced, commfuse), 1.20);
}

TEST(CommfuseSimRun, ThreadsDoNotChangeAByte) {
  const std::string grid =
      "commfuse-sim run --axis seq=1K..16K --axis ranks=2,4,8 --strategy serial,sliced,commfuse --variants all -o csv";
  const Outcome one_thread = run_program(grid + " -j 1");
  const Outcome many = run_program(grid + " -j 2");
  ASSERT_EQ(one_thread.code, 0) << one_thread.err;
  EXPECT_EQ(one_thread.out, many.out);
  // The output has a header and, for each of 5 lengths and 3 rank counts, at least one row of serial, three of sliced
  // and three of commfuse.
  EXPECT_GE(std::count(one_thread.out.begin(), one_thread.out.end(), '\n'), 1 + 5 * 3 * 7);
}

TEST(CommfuseSimRun, AnInnerRingThatDoesNotDivideTheRanksIsAMistake) {
  const Outcome outcome = run_program("commfuse-sim run --inner 3 --strategy commfuse");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "an inner ring of 3 does not divide 8 ranks; choose 2 or 4\n");
  const Outcome every_variant = run_program("commfuse-sim run --inner 3 --strategy commfuse --variants all");
  EXPECT_EQ(every_variant.err, outcome.err);
  // The direct form ignores the option.
  EXPECT_EQ(run_program("commfuse-sim run --inner 3 --form direct --strategy commfuse").code, 0);
}

TEST(CommfuseSimRun, ThereAreAsManyLanesAsPeers) {
  const Outcome outcome =
      run_program("commfuse-sim run --strategy commfuse --form direct --lanes 1K --ranks 4 --variants all -o json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const json& row : json::parse(outcome.out)) {
    EXPECT_EQ(row.at("form"), "direct");
    EXPECT_EQ(row.at("lanes"), 3);
  }
}

TEST(CommfuseSimRun, TheFirstAxisIsOutermost) {
  const Outcome outcome = run_program("commfuse-sim run --axis ranks=2,4 --axis seq=1K,2K --strategy serial -o json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::vector<std::pair<int, int>> points;
  for (const json& row : json::parse(outcome.out)) {
    points.emplace_back(row.at("ranks"), row.at("seq"));
  }
  EXPECT_EQ(points, (std::vector<std::pair<int, int>>{{2, 1024}, {2, 2048}, {4, 1024}, {4, 2048}}));
}

TEST(CommfuseSimRun, TheTableFollowsTheRuleOfTheVerdict) {
  // No difference exceeds 100%, and every difference exceeds 0% with a probability of at least 50%.
  const std::string command = "commfuse-sim run --seq 8K ";
  EXPECT_NE(run_program(command + "--verdict-difference 100%").out.find("Tie: "), std::string::npos);
  const Outcome sure = run_program(command + "--set verdict.difference=0% --set verdict.probability=50%");
  EXPECT_EQ(sure.code, 0) << sure.err;
  EXPECT_EQ(sure.out.find("Tie: "), std::string::npos) << sure.out;
  EXPECT_NE(sure.out.find(" wins ("), std::string::npos) << sure.out;
}

TEST(CommfuseSimRun, WithoutUncertaintyWarningsStayAndNoProbabilityIsShown) {
  const std::string command = "commfuse-sim run --seq 256K --strategy serial,commfuse --scope gate_up ";
  const Outcome with = run_program(command);
  const Outcome without = run_program(command + "--uncertainty off");
  EXPECT_NE(with.out.find("Beyond the fit: "), std::string::npos) << with.out;
  EXPECT_EQ(without.out.substr(without.out.find("Beyond the fit: ")),
            with.out.substr(with.out.find("Beyond the fit: ")));
  EXPECT_TRUE(without.out.find("probability unknown (--uncertainty off)") != std::string::npos ||
              without.out.find("Tie: ") != std::string::npos)
      << without.out;
}

TEST(CommfuseSimRun, StrategiesOnAnAxisAreComparedWithEachOther) {
  const Outcome outcome =
      run_program("commfuse-sim run --axis strategy.name=serial,sliced,commfuse --axis seq=4K,8K --uncertainty off");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("Of 2 points"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("serial wins 2, sliced wins 2"), std::string::npos) << outcome.out;
}

TEST(CommfuseSimRun, TheTableFitsEightyColumnsAndNamesAWinner) {
  const Outcome outcome = run_program("commfuse-sim run --axis seq=1K..128K --axis ranks=2,4,8");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::size_t start = 0;
  for (std::size_t end = 0; (end = outcome.out.find('\n', start)) != std::string::npos; start = end + 1) {
    EXPECT_LE(end - start, 80U) << outcome.out.substr(start, end - start);
  }
  EXPECT_NE(outcome.out.find("% sure): "), std::string::npos);
  EXPECT_EQ(outcome.out.find("fused_kernel wins"), std::string::npos);  // fused_kernel is a bound.
  EXPECT_NE(outcome.out.find("Of 24 points"), std::string::npos);
}

TEST(CommfuseSimRun, AnAllReducedMlpHasItsOwnStrategies) {
  const Outcome outcome = run_program("commfuse-sim run --scope mlp_ar --seq 8K -o json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::vector<std::string> strategies;
  for (const json& row : json::parse(outcome.out)) {
    strategies.push_back(row.at("strategy"));
  }
  EXPECT_EQ(strategies, (std::vector<std::string>{"serial", "sliced", "tokenweave"}));
  EXPECT_EQ(run_program("commfuse-sim run --scope mlp_ar --strategy commfuse").err,
            "strategy commfuse has no schedule for scope mlp_ar; strategies with one: serial, sliced, tokenweave\n");
}

/// Returns the first line of more than 80 columns; empty if there is none.
std::string too_long_line(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > 80) {
      return line;
    }
  }
  return "";
}

TEST(CommfuseSim, HelpPrintsExamplesAndExitCodes) {
  const Outcome outcome = run_program("commfuse-sim --help");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("commfuse-sim run --model"), std::string::npos);
  EXPECT_NE(outcome.out.find("Exit codes: 0 done"), std::string::npos);
}

TEST(CommfuseSim, EveryHelpFitsATerminal) {
  for (const char* verb : {"commfuse-sim",
                           "commfuse-sim run",
                           "commfuse-sim sweep",
                           "commfuse-sim schedule",
                           "commfuse-sim schedule list",
                           "commfuse-sim schedule show",
                           "commfuse-sim schedule check",
                           "commfuse-sim schedule export",
                           "commfuse-sim schedule mutate",
                           "commfuse-sim config",
                           "commfuse-sim config show",
                           "commfuse-sim config explain",
                           "commfuse-sim version",
                           "commfuse-sim merge",
                           "commfuse-sim results",
                           "commfuse-sim best",
                           "commfuse-sim diff",
                           "commfuse-sim schema",
                           "commfuse-sim import",
                           "commfuse-sim import megatron",
                           "commfuse-validate",
                           "commfuse-validate check",
                           "commfuse-validate version"}) {
    EXPECT_EQ(too_long_line(run_program(std::string(verb) + " --help").out), "") << verb;
  }
  EXPECT_EQ(too_long_line(run_program("commfuse-sim schedule list").out), "");
}

/// Returns every command of a program, as `pages markdown` lists them: "commfuse-sim schedule show".
std::vector<std::string> commands_of(const std::string& program) {
  std::vector<std::string> commands;
  std::istringstream lines(run_program(program + " pages markdown").out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## `")) {
      commands.push_back(line.substr(4, line.size() - 5));
    }
  }
  return commands;
}

TEST(CommfuseSim, EveryHelpFitsTheSmallestScreenOrNamesTheRest) {
  for (const std::string program : {"commfuse-sim", "commfuse-validate"}) {
    const std::vector<std::string> commands = commands_of(program);
    EXPECT_GT(commands.size(), 9U);
    for (const std::string& command : commands) {
      const std::string brief = run_program(command + " --help").out;
      const std::string whole = run_program(command + " --help-all").out;
      EXPECT_LE(std::count(brief.begin(), brief.end(), '\n'), 23) << brief;
      EXPECT_EQ(too_long_line(brief), "") << command;
      EXPECT_EQ(too_long_line(whole), "") << command;
      const bool names_the_rest = brief.ends_with("\n" + command + " --help-all prints everything.\n");
      EXPECT_EQ(brief != whole, names_the_rest) << brief;
    }
    const std::string top = run_program(program + " --help").out;
    EXPECT_LE(std::count(top.begin(), top.end(), '\n'), 50);
  }
}

TEST(CommfuseSim, ShortHelpOfRunHasTheUsualFlags) {
  const std::string brief = run_program("commfuse-sim run --help").out;
  for (const char* flag :
       {"--model", "--hardware", "--ranks", "--seq", "--scope", "--strategy", "--axis", "--output"}) {
    EXPECT_NE(brief.find(flag), std::string::npos) << flag;
  }
  EXPECT_EQ(brief.find("--evaluator"), std::string::npos);
  EXPECT_NE(run_program("commfuse-sim run --help-all").out.find("--evaluator WORD=auto"), std::string::npos);
}

TEST(CommfuseSim, HelpIsAsWideAsColumns) {
  const std::string narrow = run_program("env COLUMNS=60 commfuse-sim run --help-all").out;
  const std::string wide = run_program("env COLUMNS=120 commfuse-sim run --help-all").out;
  EXPECT_GT(std::count(narrow.begin(), narrow.end(), '\n'), std::count(wide.begin(), wide.end(), '\n'));
  EXPECT_NE(wide.find("Machine: a name in configs/hardware or configs/clusters, or a path\n"), std::string::npos);
  EXPECT_EQ(run_program("env COLUMNS= commfuse-sim run --help-all").out,
            run_program("commfuse-sim run --help-all").out);
}

TEST(CommfuseSimRun, ColorFollowsTheTerminalAndNoColor) {
  const std::string run = "commfuse-sim run --scope down --seq 32K --strategy serial,commfuse --uncertainty off";
  const std::string plain = run_program(run).out;
  EXPECT_EQ(plain.find('\x1b'), std::string::npos) << plain;
  const std::string styled = run_program("env -u NO_COLOR CLICOLOR_FORCE=1 " + run).out;
  EXPECT_NE(styled.find("\n\x1b[1m> commfuse "), std::string::npos) << styled;
  EXPECT_EQ(run_program("env CLICOLOR_FORCE=1 NO_COLOR=1 " + run).out, plain);
  EXPECT_EQ(run_program("env -u NO_COLOR CLICOLOR_FORCE=0 " + run).out, plain);
}

TEST(CommfuseSim, MessagesUseTheUsersSpellingOfAFlag) {
  EXPECT_EQ(run_program("commfuse-sim run --tp 0").err, "--tp: '0' is out of range; choose 1 to 1M ranks\n");
  EXPECT_EQ(run_program("commfuse-sim run --seq-len=x").err.rfind("--seq-len: 'x' is not a whole number; ", 0), 0U);
  EXPECT_EQ(run_program("commfuse-sim run --ranks 4 --tp 0").err.rfind("--ranks: '0' is out of range; ", 0), 0U);
  EXPECT_EQ(run_program("commfuse-sim run --tp").err.rfind("--tp: 1 required COUNT missing; ", 0), 0U);
  EXPECT_EQ(run_program("commfuse-sim version --tp 4").err.rfind("unknown flag '--tp'; ", 0), 0U);
}

TEST(CommfuseSim, SettingsAndAxesAcceptWordsOfOtherTools) {
  EXPECT_EQ(run_program("commfuse-sim run --set seq-len=8K -o csv").out,
            run_program("commfuse-sim run --seq 8K -o csv").out);
  EXPECT_EQ(run_program("commfuse-sim run --axis tp=2,4 -o csv").out,
            run_program("commfuse-sim run --axis ranks=2,4 -o csv").out);
  EXPECT_EQ(
      run_program("commfuse-sim run --set num-gpus=8").err.rfind("--set num-gpus=8: unknown setting 'num-gpus'; ", 0),
      0U);
  EXPECT_EQ(run_program("commfuse-sim config explain tp").out, run_program("commfuse-sim config explain ranks").out);
}

TEST(CommfuseSim, VersionListsTheLibrariesThatTheBuildFound) {
  const Outcome outcome = run_program("commfuse-sim version");
  EXPECT_EQ(outcome.code, 0);
  for (const char* word : {"commfuse-sim 0.", "compiler", "CUDA", "NCCL", "MPI"}) {
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word;
  }
}

TEST(CommfuseSim, AModelFileThatIsNotYamlIsNamedWithItsPlace) {
  const auto path = std::filesystem::temp_directory_path() / ("commfuse-bad-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(path) << "schema: commfuse.model/1\nname: [unclosed\n";
  const Outcome outcome = run_program("commfuse-sim run --model " + path.string());
  std::filesystem::remove(path);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err.rfind(path.string() + ":", 0), 0U) << outcome.err;
  EXPECT_NE(outcome.err.find("; "), std::string::npos) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST(CommfuseSim, TextThatIsNotUtf8IsRefusedBeforeAnythingRuns) {
  const auto path = std::filesystem::temp_directory_path() / ("commfuse-latin1-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(path) << "schema: commfuse.hardware/1\nname: h\xff\nextends: h100-sxm\n";
  const Outcome outcome = run_program("commfuse-sim run -o json --hardware " + path.string());
  std::filesystem::remove(path);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, path.string() + ":2:7: 'name' is not UTF-8; save the file as UTF-8\n");
}

}  // namespace
}  // namespace commfuse::test
