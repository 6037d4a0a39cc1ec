// SPDX-License-Identifier: Apache-2.0
// Tests commfuse-validate run and compare as a person uses them: a record, a verdict, and refusals.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "model/record/run_record.h"
#include "tests/cli/program.h"
#include "tests/cli/validate_program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

constexpr auto quick =
    " --ranks 2 --seq 1K --scope gate_up --strategy serial,commfuse --iterations 3 --warm-up 1 --dilation 1";

TEST(ValidateRun, WritesARecordThatCompareReads) {
  const OwnFolder folder;
  const Outcome run = run_program(std::string("commfuse-validate run --spans --out r.json") + quick);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("\nnoise floor: 1 ms took "), std::string::npos) << run.out;
  const RunRecord record = load_run_record("r.json");
  EXPECT_EQ(record.executor, "cpu");
  EXPECT_EQ(record.compute, "emulated");
  EXPECT_EQ(record.warm_up, 1);
  ASSERT_EQ(record.runs.size(), 2U);
  for (const MeasuredRun& measured : record.runs) {
    EXPECT_EQ(measured.makespans.size(), 3U);
    EXPECT_FALSE(measured.spans.empty());
    EXPECT_EQ(measured.schedule_sha256.size(), 64U);
  }
  const Outcome compare = run_program("commfuse-validate compare r.json -o json");
  EXPECT_EQ(compare.code, 0) << compare.err;
  const auto rows = nlohmann::json::parse(compare.out);
  ASSERT_EQ(rows.size(), 2U);
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("samples"), 3);
    EXPECT_GE(row.at("ratio"), 0.999);  // No op takes less than its price.
  }
  const std::string shows = "This run is emulated: every op slept for its predicted duration.";
  const Outcome in_words = run_program("commfuse-validate compare r.json");
  std::string text = in_words.out;
  std::ranges::replace(text, '\n', ' ');
  EXPECT_NE(text.find(shows), std::string::npos) << text;
  const Outcome by_op = run_program("commfuse-validate compare r.json --by-op --trace both.json");
  EXPECT_EQ(by_op.code, 0) << by_op.err;
  EXPECT_NE(by_op.out.find(" x gemm  "), std::string::npos) << by_op.out;
  EXPECT_NE(by_op.out.find("  worst: op "), std::string::npos) << by_op.out;
  const std::string trace = contents_of("both.json");
  EXPECT_LT(trace.find("serial predicted"), trace.find("serial measured"));
  EXPECT_LT(trace.find("commfuse measured"), trace.size());
  const Outcome page = run_program("commfuse-validate compare r.json --page page.html");
  EXPECT_EQ(page.code, 0) << page.err;
  const std::string html = contents_of("page.html");
  EXPECT_NE(html.find(", predicted and in one traced iteration"), std::string::npos);
  EXPECT_NE(html.find(shows), std::string::npos);
  EXPECT_NE(html.find("commfuse-validate compare r.json --hardware "), std::string::npos);
  RunRecord without_spans = record;
  without_spans.runs.front().spans.clear();
  std::ofstream("without.json") << to_json(without_spans);
  EXPECT_EQ(refusal("compare without.json --by-op"), "without.json: " + record.runs.front().strategy +
                                                         " lacks the spans of some ops; measure again with --spans\n");
  const Outcome over = run_program("commfuse-validate compare r.json --limit 0");
  EXPECT_EQ(over.code, 4) << over.out;
  EXPECT_NE(over.out.find("differ"), std::string::npos);
  EXPECT_NE(over.out.find("Noise floor: 1 ms took "), std::string::npos);
}

TEST(ValidateRun, CompareReportsWrongResultsAndRefusesTimesOfZero) {
  const OwnFolder folder;
  const Outcome run = run_program(
      "commfuse-validate run --seq 1K --ranks 2 --strategy serial --iterations 1 --warm-up 0 --dilation 1 --out "
      "r.json");
  EXPECT_EQ(run.code, 0) << run.err;
  RunRecord record = load_run_record("r.json");
  record.runs.at(0).status = RunStatus::wrong;
  record.runs.at(0).message = "its results on small matrices are wrong";
  std::ofstream("wrong.json") << to_json(record);
  const Outcome wrong = run_program("commfuse-validate compare wrong.json");
  EXPECT_EQ(wrong.code, 1);
  EXPECT_EQ(wrong.err, "serial: its results on small matrices are wrong\n");
  record.runs.at(0).makespans = {Duration{}};
  std::ofstream("zero.json") << to_json(record);
  EXPECT_EQ(refusal("compare zero.json"), "zero.json: a makespan of serial is 0; measure again\n");
}

TEST(ValidateRun, ThePageOfCompareHasItsWholeCommand) {
  const OwnFolder folder;
  const std::string flags = "--dilation 1 --iterations 1 --warm-up 0";
  const Outcome measured = run_program("commfuse-validate compare --seq 1K --ranks 2 --strategy serial " + flags +
                                       " --out 'my record.json' --page page.html");
  EXPECT_EQ(measured.code, 0) << measured.err;
  const std::string html = contents_of("page.html");
  EXPECT_NE(html.find(" --set seq=1K "), std::string::npos);
  EXPECT_NE(html.find(" --set strategy.name=serial "), std::string::npos);
  EXPECT_NE(html.find(" " + flags + " --page page.html"), std::string::npos);
  EXPECT_EQ(run_program("commfuse-validate compare 'my record.json' --page 'my page.html'").code, 0);
  EXPECT_NE(contents_of("my page.html")
                .find("compare &#39;my record.json&#39; --hardware h100-sxm --page &#39;my page.html&#39;"),
            std::string::npos);
  EXPECT_EQ(run_program("commfuse-validate compare 'my record.json' --interference none --page other.html").code, 0);
  const std::string other = contents_of("other.html");
  EXPECT_NE(other.find(" --hardware h100-sxm --set interference=none --page other.html"), std::string::npos);
  EXPECT_NE(other.find("predicted with interference"), std::string::npos);
}

TEST(ValidateRun, ASchedulesFileIsNeverReplacedByTheOutput) {
  const OwnFolder folder;
  std::filesystem::copy_file(project_folder / "configs/schedules/doubling.yaml", "d.yaml");
  const std::string refused = "d.yaml cannot be written: the command reads this file; choose another path\n";
  EXPECT_EQ(refusal("run --schedule ./d.yaml --out d.yaml"), refused);
  EXPECT_EQ(refusal("compare --schedule ./d.yaml --page d.yaml"), refused);
}

TEST(ValidateRun, TwoOutputsOfCompareAreTwoFiles) {
  const OwnFolder folder;
  EXPECT_EQ(refusal("compare --out all.json --page ./all.json"),
            "--page: ./all.json is also --out; choose another file\n");
  EXPECT_EQ(refusal("compare --page all.html --trace all.html"),
            "--trace: all.html is also --page; choose another file\n");
  EXPECT_TRUE(std::filesystem::is_empty("."));
}

TEST(ValidateRun, MeasuresRealGemmsOverPacedLinks) {
  const Outcome run = run_program(
      "commfuse-validate run --compute real --link-bandwidth '1 GB/s' --link-latency '10 us' --model gpt-2-xl --ranks "
      "2 --seq 64 --scope gate_up --strategy serial --iterations 2 -o json");
  EXPECT_EQ(run.code, 0) << run.err;
  const RunRecord record = parse_run_record(run.out, "stdout");
  EXPECT_EQ(record.compute, "real");
  EXPECT_EQ(record.links, "paced");
  ASSERT_EQ(record.runs.size(), 1U);
  EXPECT_EQ(record.runs[0].makespans.size(), 2U);
  EXPECT_EQ(record.runs[0].status, RunStatus::done);
  EXPECT_EQ(record.runs[0].levels.front().level, "T0");
  EXPECT_TRUE(record.micro_benchmarks.empty());  // --spans was not given.
}

TEST(ValidateRun, RealTimesOfCpusAreNotComparedWithGpusUnnoticed) {
  const OwnFolder folder;
  const Outcome run = run_program(
      "commfuse-validate run --compute real --model gpt-2-xl --ranks 2 --seq 64 --scope gate_up --strategy serial "
      "--iterations 1 --out r.json");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("\nexecutor cpu, compute real, links copied, in real time\n"), std::string::npos) << run.out;
  const std::string mismatch =
      "real compute on CPUs, but predicted for h100-sxm; add --hardware cpu, or the file that commfuse-validate "
      "calibrate wrote";
  const Outcome for_gpus = run_program("commfuse-validate compare r.json --page page.html");
  EXPECT_EQ(for_gpus.code, 0);
  EXPECT_EQ(for_gpus.err, "note: " + mismatch + "\n");
  std::string text = for_gpus.out;
  std::ranges::replace(text, '\n', ' ');
  EXPECT_TRUE(text.ends_with(" compute, in real time. ")) << text;
  EXPECT_NE(contents_of("page.html").find(" Not comparable: " + mismatch + "."), std::string::npos);
  const Outcome for_cpus = run_program("commfuse-validate compare r.json --hardware cpu");
  EXPECT_EQ(for_cpus.code, 0);
  EXPECT_EQ(for_cpus.err, "");
}

TEST(ValidateRun, WithSpansTheOpsOfARealRunCanBeFitted) {
  const Outcome run = run_program(
      "commfuse-validate run --compute real --model gpt-2-xl --ranks 2 --seq 64 --scope gate_up --strategy sliced "
      "--slices 2 --iterations 1 --spans -o json");
  EXPECT_EQ(run.code, 0) << run.err;
  const RunRecord record = parse_run_record(run.out, "stdout");
  const auto benchmark_of = [&](const std::string& op) {
    return std::ranges::find_if(record.micro_benchmarks, [&](const auto& benchmark) { return benchmark.op == op; });
  };
  const auto gemm = benchmark_of("product");
  ASSERT_NE(gemm, record.micro_benchmarks.end());
  EXPECT_EQ(gemm->beside, inside_schedule);
  EXPECT_EQ(gemm->m, 32);
  EXPECT_EQ(gemm->n, 3200);
  EXPECT_EQ(gemm->k, 1600);
  EXPECT_EQ(gemm->samples.size(), 2U);  // There is one sample for each slice.
  EXPECT_NE(benchmark_of("all_gather"), record.micro_benchmarks.end());
}

TEST(ValidateRun, RefusesNonsensicalFlags) {
  EXPECT_EQ(refusal("run --executor gpu"), "--executor: unknown executor 'gpu'; did you mean 'cpu'?\n");
  EXPECT_EQ(refusal("run --iterations none"),
            "--iterations: 'none' is not a whole number from 1 to 1000000; write one, as in --iterations 25\n");
  EXPECT_EQ(refusal("run --dilation 0"), "--dilation: '0' is not a number from 1 to 1000000; write one, or auto\n");
  EXPECT_EQ(refusal("run --compute real --dilation 2"),
            "--dilation slows emulated ops only, but these ops run for real; remove --dilation\n");
  EXPECT_EQ(refusal("run --link-bandwidth '1 GB/s'"),
            "--link-bandwidth and --link-latency require --compute real; add it, or remove them\n");
  EXPECT_EQ(refusal("run --compute real --link-bandwidth fast"),
            "--link-bandwidth: 'fast' is not a bandwidth; write a number and a unit, as in '2 GB/s'\n");
  EXPECT_EQ(refusal("run --set jitter=default"),
            "measured times vary by themselves: set jitter and faults to none, and interference to static or none\n");
  EXPECT_EQ(refusal("run --model mistral-7b --scope attention --ranks 4 --seq 8K"),
            "mistral-7b attends to 4096 keys in some layers, but executors attend to all 8192; choose a scope without "
            "attention, such as mlp, or seq up to 4096\n");
  EXPECT_EQ(refusal("run --model 64x64-e8-top2 --scope down --ranks 2 --seq 64"),
            "64x64-e8-top2 has experts, but executors run GEMMs with a single weight; choose a model without experts, "
            "such as 8192x28672\n");
  EXPECT_EQ(refusal("compare nowhere.json"),
            "nowhere.json: no such file; write it with --out of commfuse-validate run, bench or links\n");
  EXPECT_EQ(refusal("compare r.json --iterations 3"),
            "--iterations applies to a measurement, but a record was given; remove one of them\n");
}

TEST(ValidateRun, EmulatedOpsRunInFp8AndRealOnesRefuseIt) {
  const std::string point = "--scope down --model 512x1024 --ranks 2 --seq 256 --dtype fp8 ";
  const Outcome emulated =
      run_program("commfuse-validate compare --iterations 1 --warm-up 0 --strategy serial " + point);
  EXPECT_EQ(emulated.code, 0) << emulated.err;
  EXPECT_EQ(refusal("run --compute real " + point),
            "--dtype: executors do not store fp8; choose bf16, fp16 or fp32, or --compute emulated\n");
  EXPECT_EQ(refusal("run --executor cuda-virtual " + point),
            "--dtype: executors do not store fp8; choose bf16, fp16 or fp32\n");
}

TEST(ValidateRun, StrategiesThatWereNotNamedAreLeftOutWhereTheyCannotRun) {
  const std::string point = "run --scope down --ranks 2 --seq 1026 --iterations 1 --warm-up 0 --dilation 1";
  const std::string reason = "1026 tokens cannot be cut into 4 equal blocks, as sliced (k=2) down requires; ";
  const Outcome outcome = run_program("commfuse-validate " + point);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("note: sliced is not compared: " + reason), 0U) << outcome.err;
  EXPECT_EQ(outcome.out.find("sliced"), std::string::npos) << outcome.out;
  EXPECT_EQ(refusal(point + " --strategy serial,sliced").find(reason), 0U);
}

TEST(ValidateRun, LinkRatesAndLatenciesHaveLimits) {
  const std::string real = "run --compute real --model gpt-2-xl --seq 16 --ranks 2 ";
  for (const char* bandwidth : {"1e-300GB/s", "1B/s", "999kB/s", "1001TB/s", "0GB/s"}) {
    EXPECT_EQ(
        refusal(real + "--link-bandwidth " + bandwidth),
        fmt::format(
            "--link-bandwidth: '{}' is outside 1 MB/s to 1000 TB/s; choose a realistic bandwidth, as in '2 GB/s'\n",
            bandwidth));
  }
  EXPECT_EQ(refusal("bench --link-bandwidth 1GB/s --link-latency 9000000s"),
            "--link-latency: '9000000s' is more than 1 s; choose a realistic latency, as in '5 us'\n");
}

TEST(ValidateRun, ARecordOfAnotherScheduleIsRefused) {
  const OwnFolder folder;
  ASSERT_EQ(run_program(std::string("commfuse-validate run --out r.json") + quick).code, 0);
  RunRecord record = load_run_record("r.json");
  record.runs[0].schedule_sha256 = "00";
  std::ofstream("other.json") << to_json(record);
  EXPECT_EQ(refusal("compare other.json"),
            "other.json: the schedule of serial has changed since it was measured; measure again\n");
  record.runs[0].strategy = "fastest";
  std::ofstream("unknown.json") << to_json(record);
  EXPECT_EQ(refusal("compare unknown.json"), "unknown.json: unknown strategy 'fastest'; measure again\n");
  record.runs[0].strategy = "commfuse";
  record.runs[0].options = {{"form", "square"}};
  std::ofstream("option.json") << to_json(record);
  EXPECT_EQ(refusal("compare option.json"), "option.json: commfuse has no option 'form' of 'square'; measure again\n");
}

TEST(ValidateRun, AScheduleFromAFileIsMeasuredAndCompared) {
  const OwnFolder folder;
  const std::string file = " --schedule doubling";
  const Outcome run =
      run_program("commfuse-validate run --seq 1K --iterations 3 --warm-up 1 --dilation 1 --spans --out r.json" + file);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("\ndoubling (doubling.yaml) "), std::string::npos) << run.out;
  const RunRecord record = load_run_record("r.json");
  ASSERT_EQ(record.runs.size(), 1U);
  EXPECT_EQ(record.runs[0].strategy, "doubling");
  EXPECT_EQ(record.runs[0].parameters, "doubling.yaml");
  EXPECT_EQ(record.runs[0].makespans.size(), 3U);
  EXPECT_EQ(refusal("compare r.json"),
            "r.json: unknown strategy 'doubling'; add --schedule with its file, doubling.yaml, or measure again\n");
  const Outcome compare = run_program("commfuse-validate compare r.json --by-op -o json" + file);
  EXPECT_EQ(compare.code, 0) << compare.err;
  const auto rows = nlohmann::json::parse(compare.out);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].at("strategy"), "doubling");
  EXPECT_GE(rows[0].at("ratio"), 0.999);
  const Outcome page = run_program("commfuse-validate compare r.json --page page.html" + file);
  EXPECT_EQ(page.code, 0) << page.err;
  EXPECT_NE(contents_of("page.html").find(" --schedule doubling --page page.html"), std::string::npos);
}

TEST(ValidateRun, AScheduleFromAFileRunsForRealBesideStrategies) {
  const OwnFolder folder;
  std::ofstream("small.yaml") << "schema: commfuse.model/1\nname: small\nlayers: 1\nhidden: 256\nffn: 512\nheads: 4\n"
                                 "kv_heads: 4\nhead_dim: 64\nvocab: 256\ngated_mlp: false\n";
  const Outcome run = run_program(
      "commfuse-validate run --schedule doubling --strategy serial --compute real --model ./small.yaml --seq 16 "
      "--iterations 2 --warm-up 0 --out r.json");
  EXPECT_EQ(run.code, 0) << run.err;
  const RunRecord record = load_run_record("r.json");
  ASSERT_EQ(record.runs.size(), 2U);
  EXPECT_EQ(record.runs[0].strategy, "serial");
  EXPECT_EQ(record.runs[1].strategy, "doubling");
  for (const MeasuredRun& measured : record.runs) {
    EXPECT_EQ(measured.status, RunStatus::done);
    EXPECT_FALSE(measured.levels.empty()) << measured.strategy;
  }
}

TEST(ValidateRun, AWrongSettingOfARecordIsNamedWithItsFile) {
  const OwnFolder folder;
  RunRecord record{.executor = "cpu"};
  record.runs.push_back({.strategy = "serial", .makespans = {Duration(1)}});
  record.settings = {{"seq", "1K"}, {"speed", "high"}};
  std::ofstream("unknown.json") << to_json(record);
  EXPECT_EQ(refusal("compare unknown.json"), "unknown.json: settings.speed: unknown setting; measure again\n");
  record.settings = {{"seq", "many"}};
  std::ofstream("wrong.json") << to_json(record);
  EXPECT_EQ(refusal("compare wrong.json"),
            "wrong.json: settings.seq: 'many' is not a whole number; write one, such as 4K\n");
}

TEST(ValidateRun, SettingsThatContradictTheRecordAreRefused) {
  const OwnFolder folder;
  ASSERT_EQ(run_program(std::string("commfuse-validate run --out r.json") + quick).code, 0);
  const std::string measured_with = " contradicts r.json, which was measured with ";
  const std::string remedy = "; remove this setting, or measure again\n";
  EXPECT_EQ(refusal("compare r.json --seq 4K"), "--seq: '4K'" + measured_with + "seq 1K" + remedy);
  EXPECT_EQ(refusal("compare r.json --batch 64"), "--batch: '64'" + measured_with + "batch 1" + remedy);
  EXPECT_EQ(refusal("compare r.json --ranks 4"), "--ranks: '4'" + measured_with + "ranks 2" + remedy);
  EXPECT_EQ(refusal("compare r.json --model llama-3.1-8b"),
            "--model: 'llama-3.1-8b'" + measured_with + "model llama-3.1-70b" + remedy);
  EXPECT_EQ(refusal("compare r.json --set scope=mlp"),
            "--set scope=mlp: 'mlp'" + measured_with + "scope gate_up" + remedy);
  const Outcome variable = run_program("COMMFUSE_SEQ=4K commfuse-validate compare r.json");
  EXPECT_EQ(variable.code, 2);
  EXPECT_EQ(variable.err, "COMMFUSE_SEQ: '4K'" + measured_with + "seq 1K" + remedy);
  EXPECT_EQ(refusal("compare r.json --strategy serial"),
            "--strategy chooses what to measure, but a record was given; remove one of them\n");
  const Outcome repriced = run_program(
      "COMMFUSE_STRATEGY_NAME=serial commfuse-validate compare r.json --seq 1024 --hardware h200-sxm "
      "--interference none -o json");
  EXPECT_EQ(repriced.code, 0) << repriced.err;
  EXPECT_EQ(nlohmann::json::parse(repriced.out).size(), 2U);
  EXPECT_EQ(repriced.err,
            "note: ops slept for prices with hardware h100-sxm, but the prediction uses h200-sxm; remove this setting, "
            "or measure again\n");
  EXPECT_EQ(run_program("commfuse-validate compare r.json --seq 1024").err, "");
}

TEST(ValidateDoctor, ListsWhatCanRunOnThisMachine) {
  const Outcome outcome = run_program("commfuse-validate doctor");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* line : {"machine    ", "timer      1 ms took ", "reference  yes: ", "cpu        yes: ",
                           "mpi        ", "cuda       ", "nccl       ", "configs    yes: "}) {
    EXPECT_NE(outcome.out.find(line), std::string::npos) << line << outcome.out;
  }
  const Outcome lost = run_program("COMMFUSE_CONFIG_DIR=/nowhere commfuse-validate doctor");
  EXPECT_EQ(lost.code, 0);
  EXPECT_NE(lost.out.find("configs    no: "), std::string::npos) << lost.out;
}

TEST(ValidateRun, HelpShowsExamples) {
  for (const char* command : {"run", "compare"}) {
    const Outcome outcome = run_program(std::string("commfuse-validate ") + command + " --help-all");
    EXPECT_EQ(outcome.code, 0);
    EXPECT_NE(outcome.out.find(std::string("\n  commfuse-validate ") + command + " "), std::string::npos);
    EXPECT_NE(outcome.out.find("Exit codes: 0 done; "), std::string::npos);
  }
}

}  // namespace
}  // namespace commfuse::test
