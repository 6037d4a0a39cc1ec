// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string plans = COMMFUSE_SOURCE_DIR "/configs/plans/";

/// Returns the plan of a shipped file.
json planned(const std::string& name) {
  const Outcome outcome = run_program("commfuse-sim plan " + plans + name + " -o json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return json::parse(outcome.out);
}

/// Checks a run's totals against a calculation from the run's other figures.
void check_arithmetic(const json& asked, const json& kind, const json& run) {
  const double gpus = run.at("gpus");
  const double rate = run.at("tokens_per_second").at("value");
  const double tokens = asked.at("tokens");
  // The formulas of Young and Daly give the checkpoint interval and the goodput.
  const double seconds_between_failures = 3600.0 / (gpus * asked.at("failures_per_gpu_hour").get<double>());
  const double checkpoint = asked.at("checkpoint_s");
  const double share = checkpoint / (2.0 * seconds_between_failures);
  const double interval =
      std::sqrt(2.0 * checkpoint * seconds_between_failures) * (1.0 + std::sqrt(share) / 3.0 + share / 9.0) -
      checkpoint;
  EXPECT_NEAR(run.at("checkpoint_every_s"), interval, 1e-6 * interval);
  const double lost = std::exp(asked.at("restart_s").get<double>() / seconds_between_failures) *
                      (std::exp((interval + checkpoint) / seconds_between_failures) - 1.0);
  const double goodput = interval / (seconds_between_failures * lost);
  EXPECT_NEAR(run.at("goodput").at("value"), goodput, 1e-9);
  // A step has a fixed number of tokens.
  const double step = run.at("step_s").at("value");
  EXPECT_NEAR(rate * step, asked.at("batch").get<double>() * asked.at("seq").get<double>(), 1e-6 * rate * step);
  EXPECT_NEAR(run.at("compute_s").get<double>() + run.at("waiting_s").get<double>() +
                  run.at("gradients_s").get<double>() + run.at("optimizer_s").get<double>(),
              step, 1e-9);
  const double days = tokens / (rate * goodput) / 86'400.0;
  EXPECT_NEAR(run.at("days").at("value"), days, 1e-9 * days);
  const double hours = gpus * days * 24.0;
  EXPECT_NEAR(run.at("gpu_hours").at("value"), hours, 1e-9 * hours);
  const double kwh = hours * kind.at("power_w").get<double>() / 1e3 * asked.at("pue").get<double>();
  if (!run.at("energy_mwh").is_null()) {
    EXPECT_NEAR(run.at("energy_mwh").at("value"), kwh / 1e3, 1e-9 * kwh);
  }
  const double cost = hours * kind.at("price").get<double>() + kwh * asked.at("energy_price").get<double>();
  EXPECT_NEAR(run.at("cost").at("value"), cost, 1e-9 * cost);
  EXPECT_NEAR(run.at("cost_per_mtok").at("value"), cost / tokens * 1e6, 1e-9 * cost);
  EXPECT_NEAR(run.at("failures"), days * 86'400.0 / seconds_between_failures, 1e-6 * run.at("failures").get<double>());
}

TEST(CommfuseSimPlan, EveryTotalFollowsFromTheFiguresOfItsRun) {
  std::size_t runs = 0;
  for (const char* name : {"train-70b.yaml", "compare-gpus.yaml"}) {
    const json plan = planned(name);
    for (const json& kind : plan.at("kinds")) {
      for (const json& run : kind.at("runs")) {
        check_arithmetic(plan.at("asked"), kind, run);
        ++runs;
      }
    }
  }
  EXPECT_GT(runs, 40U);
}

TEST(CommfuseSimPlan, VariablesCountUnlessAFlagOrAFileStatesTheSetting) {
  const std::string fewest_flags = "commfuse-sim plan --tokens 1T --count 64 -o csv";
  const std::string flags = fewest_flags + " --model llama-3.1-8b --seq 8K --hardware h100-sxm --price 2";
  const Outcome by_flags = run_program(flags);
  ASSERT_EQ(by_flags.code, 0) << by_flags.err;
  const Outcome by_variables = run_program(
      "COMMFUSE_MODEL=llama-3.1-8b COMMFUSE_SEQ=8K COMMFUSE_HARDWARE=h100-sxm COMMFUSE_PRICE=2 " + fewest_flags);
  EXPECT_EQ(by_variables.out, by_flags.out) << by_variables.err;
  EXPECT_EQ(run_program("COMMFUSE_SEQ=4K COMMFUSE_HARDWARE=b200-sxm COMMFUSE_PRICE=3 " + flags).out, by_flags.out);
  const Outcome unused = run_program("COMMFUSE_LAUNCH=graph " + flags);
  EXPECT_EQ(unused.out, by_flags.out);
  EXPECT_EQ(unused.err, "note: COMMFUSE_LAUNCH is ignored; plan does not use 'launch'\n");
  EXPECT_EQ(run_program("COMMFUSE_SEQ=4K commfuse-sim plan " + plans + "train-70b.yaml -o verdict").err,
            "note: COMMFUSE_SEQ is ignored; a plan file states its settings\n");
  EXPECT_EQ(run_program("COMMFUSE_SHEQ=4K " + flags).code, 2);
}

TEST(CommfuseSimPlan, ThePublishedFlopsOfLlama70BAreSixN) {
  const json asked = planned("train-70b.yaml").at("asked");
  // 70.55e9 parameters; attention 3 x 2 x layers x seq x heads x head_dim per token, causal; the embedding is a lookup.
  const double attention = 3.0 * 2.0 * 80 * 8192 * 64 * 128;
  const double embedding = 6.0 * 128'256 * 8192;
  EXPECT_NEAR(asked.at("six_n").get<double>() - embedding + attention, asked.at("flops_per_token"),
              1e-3 * asked.at("flops_per_token").get<double>());
  EXPECT_EQ(asked.at("attention"), "causal");
}

TEST(CommfuseSimPlan, EveryShippedPlanHasAnAnswer) {
  for (const fs::directory_entry& entry : fs::directory_iterator(plans)) {
    if (entry.path().extension() != ".yaml") {
      continue;
    }
    const json plan = planned(entry.path().filename().string());
    EXPECT_EQ(plan.at("schema"), "commfuse.capacity/1");
    const json& kind = plan.at("kinds").at(plan.at("answer").get<std::size_t>());
    EXPECT_EQ(kind.at("runs").at(kind.at("answer").get<std::size_t>()).at("misses"), "") << entry.path();
    EXPECT_EQ(plan.at("curves").size(), 2U);
  }
}

TEST(CommfuseSimPlan, AtTheBreakEvenPriceBothFabricsCostTheSame) {
  const json plan = planned("faster-fabric.yaml");
  const auto answer = [](const json& kind) { return kind.at("runs").at(kind.at("answer").get<std::size_t>()); };
  const json slow = answer(plan.at("kinds").at(0));
  const json fast = answer(plan.at("kinds").at(1));
  const double price = plan.at("kinds").at(1).at("break_even_price");
  EXPECT_GT(price, 2.5);
  EXPECT_NEAR(fast.at("gpu_hours").at("value").get<double>() * price, slow.at("cost").at("value"), 1.0);
}

TEST(CommfuseSimPlan, WritesFourReproducibleFilesAndReplacesNone) {
  const fs::path folder = fs::temp_directory_path() / ("commfuse-plan-" + std::to_string(getpid()));
  const std::string command = "commfuse-sim plan " + plans + "compare-gpus.yaml --out " + folder.string();
  const Outcome text = run_program(command);
  ASSERT_EQ(text.code, 0) << text.err;
  std::istringstream lines(text.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
  }
  EXPECT_EQ(contents_of(folder / "plan.json"),
            run_program("commfuse-sim plan " + plans + "compare-gpus.yaml -o json").out);
  EXPECT_EQ(contents_of(folder / "plan.md"),
            run_program("commfuse-sim plan " + plans + "compare-gpus.yaml -o markdown").out);
  const json plan = json::parse(contents_of(folder / "plan.json"));
  const std::string csv = contents_of(folder / "plan.csv");
  for (const json& kind : plan.at("kinds")) {
    for (const json& run : kind.at("runs")) {
      EXPECT_NE(csv.find("," + run.at("cost").at("value").dump() + ","), std::string::npos);
    }
  }
  EXPECT_EQ(contents_of(folder / "plan.html").rfind("<!DOCTYPE html>", 0), 0U);
  EXPECT_EQ(run_program(command).code, 2);  // The command replaces no file.
  fs::remove_all(folder);
}

TEST(CommfuseSimPlan, ReportsThatNothingMeetsTheLimits) {
  const fs::path file = fs::temp_directory_path() / ("commfuse-plan-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(file) << "schema: commfuse.plan/1\ntokens: 1e12\ndeadline: 1 h\nset: {model: llama-3.1-8b}\n"
                         "gpus: {few: {hardware: h100-sxm, price: 2, price_date: 2026-05-04, available: 8}}\n";
  const Outcome outcome = run_program("commfuse-sim plan " + file.string());
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find("\nNo option meets the limits. For few, the deadline binds: the shortest run"),
            std::string::npos)
      << outcome.out;
  const json plan = json::parse(run_program("commfuse-sim plan " + file.string() + " -o json").out);
  EXPECT_TRUE(plan.at("answer").is_null());
  fs::remove(file);
}

/// Returns the comparison of times, such as "Measured 3000.0 ms, predicted 2912.3 ms".
std::string comparison_in(const std::string& text) { return text.substr(0, text.find(':')); }

TEST(CommfuseSimPlan, AMeasuredStepIsComparedUnderTheJitterOfThePlan) {
  const OwnFolder folder;
  std::ofstream("ran.yaml") << "model: llama-3.1-8b\nhardware: dgx-h100-x2\nscope: step\nranks: 2\nseq: 4K\n"
                               "batch: 128\nparallel: {data: 8}\nstrategy: {name: commfuse}\njitter: none\n";
  const std::string without = comparison_in(run_program("commfuse-sim run ran.yaml --measured-step 3s").out);
  const std::string with =
      comparison_in(run_program("commfuse-sim run ran.yaml --jitter default --measured-step 3s").out);
  EXPECT_TRUE(with.starts_with("Measured 3000.0 ms, predicted ")) << with;
  EXPECT_NE(with, without);
  const std::string measured = " --measured-step 3s --measured-config ran.yaml";
  const std::string plan =
      "commfuse-sim plan --model llama-3.1-8b --tokens 1T --gpus h100 --price 2 --available 16 --deadline 500d --seq "
      "4K "
      "--batch 128";
  EXPECT_EQ(comparison_in(run_program(plan + measured + " --out page").err), with);
  EXPECT_NE(contents_of("page/plan.html").find(measured + " --out page"), std::string::npos);
  EXPECT_EQ(comparison_in(run_program(plan + " --jitter none" + measured).err), without);
  const std::string tune = "commfuse-sim tune --model llama-3.1-8b --cluster dgx-h100 --gpus 16 --seq 4K --batch 128";
  EXPECT_NE(run_program(tune + " --jitter default" + measured).out.find(with), std::string::npos);
  EXPECT_NE(run_program(tune + measured).out.find(without), std::string::npos);
  // 48 GFLOPs for each of 524,288 tokens take 1.6 s on 16 GPUs at 989 TFLOP/s.
  for (const std::string& command : {std::string("commfuse-sim run ran.yaml --measured-step 1s"),
                                     tune + " --measured-step 1s --measured-config ran.yaml",
                                     plan + " --measured-step 1s --measured-config ran.yaml"}) {
    const Outcome impossible = run_program(command);
    EXPECT_EQ(impossible.code, 2) << command;
    EXPECT_TRUE(impossible.err.starts_with("--measured-step: 1 s is impossible for this configuration")) << command;
  }
}

TEST(CommfuseSimPlan, ANoteNamesTimesThatAreLimitedToTheDensePeak) {
  const OwnFolder folder;
  std::ofstream("ran.yaml") << "model: llama-3.1-8b\nhardware: h100-sxm\nscope: step\nranks: 2\nbatch: 64\n"
                               "parallel: {data: 4, zero: 1}\nstrategy: {name: serial}\n";
  // The model FLOPs take 1.6 s. Measured with serial collectives, 1.65 s would make the overlapped step shorter.
  const std::string measured = " --measured-step 1650ms --measured-config ran.yaml";
  const std::string note =
      " would take less time than the model FLOPs at the dense peak of the GPUs, so this limit is stated instead; "
      "check the measured step and the settings\n";
  const Outcome run = run_program("commfuse-sim run ran.yaml --strategy serial,commfuse" + measured);
  EXPECT_EQ(run.err, "note: corrected by the measured step, commfuse" + note);
  EXPECT_NE(run.out.find("100.0%"), std::string::npos) << run.out;
  const std::string fixed = " --model llama-3.1-8b --batch 64 --ranks 2 --zero 1 --micro-batch 1 --recompute none";
  const Outcome tune = run_program("commfuse-sim tune --hardware h100-sxm --data-parallel 4" + fixed + measured);
  EXPECT_EQ(tune.err, "note: corrected by the measured step, 1 plan" + note);
  const Outcome plan = run_program(
      "commfuse-sim plan --tokens 1T --gpus h100-sxm --price 2 --count 8 --budget 1M --jitter none" + fixed + measured);
  EXPECT_NE(plan.err.find("note: corrected by the measured step, 1 run on h100-sxm" + note), std::string::npos)
      << plan.err;
  EXPECT_EQ(run_program("commfuse-sim run ran.yaml --measured-step 1650ms").err, "");
}

TEST(CommfuseSimPlan, AMeasuredStepDoesNotDependOnTheOrderOfOffers) {
  const OwnFolder folder;
  std::ofstream("ran.yaml") << "model: llama-3.1-8b\nhardware: h100-sxm\nscope: step\nranks: 2\nseq: 4K\n"
                               "batch: 128\nparallel: {data: 8}\nstrategy: {name: commfuse}\n";
  const std::string a100 = "  a100: {hardware: dgx-a100-x2, price: 2, price_date: 2026-05-04, available: 16}\n";
  const std::string h100 = "  h100: {hardware: dgx-h100-x2, price: 2, price_date: 2026-05-04, available: 16}\n";
  const auto planned = [](const std::string& offers) {
    std::ofstream("plan.yaml") << "schema: commfuse.plan/1\ntokens: 1e12\ndeadline: 500 d\n"
                                  "set: {model: llama-3.1-8b, seq: 4K, batch: 128}\ngpus:\n"
                               << offers;
    return run_program("commfuse-sim plan plan.yaml --measured-step 3s --measured-config ran.yaml -o verdict");
  };
  const Outcome first = planned(h100 + a100);
  EXPECT_TRUE(first.err.starts_with("Measured 3000.0 ms, predicted ")) << first.err;
  EXPECT_EQ(planned(a100 + h100).err, first.err);
}

TEST(CommfuseSimPlan, AMistakeIsOneSentence) {
  const Outcome wrong = run_program("commfuse-sim plan " + plans + "train-70b.yaml -o html");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_EQ(wrong.err, "--output: unknown format 'html'; known formats: table, json, csv, markdown, verdict\n");
  EXPECT_EQ(run_program("commfuse-sim plan absent.yaml").err,
            "absent.yaml: cannot be read (No such file or directory); check the path\n");
}

const std::string by_flags = "commfuse-sim plan --model llama-3.1-8b --tokens 500b --gpus h100 --price 2.5 --budget 3m";

TEST(CommfuseSimPlan, ByFlagsNamesEveryFlagThatIsMissing) {
  EXPECT_EQ(run_program("commfuse-sim plan --tokens 2T --gpus h100 --price 2.80 --deadline 90d").err,
            "--model is missing; add it, as in --model llama-3.1-70b, or give a plan file\n");
  EXPECT_EQ(run_program("commfuse-sim plan --model llama-3.1-8b --tokens 2T").err,
            "--gpus, --price, one of --deadline, --budget and --count are missing; add them, as in --gpus h100 --price "
            "2.80 --deadline 90d, or give a plan file\n");
  EXPECT_EQ(run_program("commfuse-sim plan --model llama-3.1-8b --tokens 2T --gpus h100 --price 2.80").err,
            "one of --deadline, --budget and --count is missing; add it, as in --deadline 90d, or give a plan file\n");
}

TEST(CommfuseSimPlan, ByFlagsNamesTheFlagOfAMistake) {
  const std::string llama = "commfuse-sim plan --model llama-3.1-8b --tokens 500B ";
  EXPECT_EQ(run_program(llama + "--gpus h100 --price -2 --deadline 90").err,
            "--deadline: '90' is not a span of time above 0 or a day; write one, as in \"deadline: 60 days\" or "
            "\"deadline: 2027-03-01\"\n--price: 'price' is -2; choose 0 to 1000000000\n");
  EXPECT_EQ(run_program(llama + "--hardware h100 --gpus 16 --price 2 --deadline 90d").err,
            "--gpus: the flag names the hardware, as in --gpus h100; write --count 16 for exactly 16 GPUs, or "
            "--available 16 for at most 16\n");
  EXPECT_EQ(run_program(llama + "--gpus 1 --price 2 --deadline 90d").err,
            "--gpus: the flag names the hardware, as in --gpus h100; write --count 1 for exactly 1 GPU, or "
            "--available 1 for at most 1\n");
  EXPECT_EQ(run_program(llama + "--hardware h100 --gpus h200 --price 2 --deadline 90d").err,
            "--gpus and --hardware both name the hardware; remove one\n");
}

TEST(CommfuseSimPlan, ByFlagsTakesADayAsDeadline) {
  const OwnFolder folder;
  const std::string given = "commfuse-sim plan --model llama-3.1-8b --tokens 500b --gpus h100 --price 2.5 ";
  const Outcome span = run_program(given + "--deadline 59d -o json");
  const Outcome day = run_program(given + "--start 2027-01-01 --deadline 2027-03-01 -o json --out page");
  ASSERT_EQ(day.code, 0) << day.err;
  EXPECT_EQ(nlohmann::json::parse(day.out).at("answer"), nlohmann::json::parse(span.out).at("answer"));
  EXPECT_NE(contents_of("page/plan.html").find("--start 2027-01-01 --deadline 2027-03-01"), std::string::npos);
  const Outcome from_today = run_program(given + "--deadline 2999-01-01");
  EXPECT_NE(from_today.out.find("\nstart: "), std::string::npos) << from_today.out << from_today.err;
  EXPECT_EQ(run_program(given + "--deadline 2020-01-01").err,
            "--deadline: 'deadline' is not after 'start'; choose a later day\n");
  EXPECT_EQ(run_program(given + "--deadline 90d --start 2027-01-01").err,
            "--start: 'start' requires a day as 'deadline'; write the day, or remove 'start'\n");
}

TEST(CommfuseSimPlan, AnExactCountIsPlannedWithoutALimit) {
  const std::string given = "commfuse-sim plan --model llama-3.1-8b --tokens 500b --gpus h100 --price 2.5 --batch 256 ";
  const Outcome outcome = run_program(given + "--count 256 -o json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const json plan = json::parse(outcome.out);
  const json& kind = plan.at("kinds").at(0);
  EXPECT_EQ(kind.at("count"), 256);
  ASSERT_EQ(kind.at("runs").size(), 1U);
  const json& run = kind.at("runs").at(0);
  EXPECT_EQ(run.at("gpus"), 256);
  EXPECT_TRUE(plan.at("verdict").get<std::string>().starts_with("Train on 256 h100 ("));
  EXPECT_EQ(plan.at("verdict").get<std::string>().find("chance"), std::string::npos);
  // tune puts the same layout first.
  const json tuned = json::parse(
      run_program("commfuse-sim tune --model llama-3.1-8b --cluster dgx-h100 --gpus 256 --batch 256 --jitter default "
                  "--uncertainty off -o json")
          .out);
  for (const char* key : {"tensor", "pipeline", "context", "data", "zero", "micro_batch", "recompute"}) {
    EXPECT_EQ(run.at("layout").at(key), tuned.at("best").at(0).at(key)) << key;
  }
  const std::string text = run_program(given + "--count 256").out;
  EXPECT_EQ(text.find("chance"), std::string::npos) << text;
  EXPECT_NE(text.find("exactly 256"), std::string::npos) << text;
}

TEST(CommfuseSimPlan, ACountThatFillsNoNodesIsNotBlamedOnTheBatch) {
  const Outcome outcome =
      run_program("commfuse-sim plan --model llama-3.1-8b --tokens 500b --gpus h100 --price 2.5 --batch 96 --count 12");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "--count: 'gpus.h100.count' is 12, but a plan uses whole nodes of 8 GPUs, or a number that divides one "
            "evenly; choose 8 or 16, or see a step on 12 with commfuse-sim tune\n");
}

TEST(CommfuseSimPlan, TensorRanksThatDoNotDivideTheHeadsAreAMistake) {
  const std::string heads =
      "the number of heads 32 is not a multiple of tensor parallelism 3; choose tensor ranks that divide it\n";
  const Outcome plan = run_program(
      "commfuse-sim plan --model llama-3.1-8b --gpus h100 --price 2.5 --tokens 15T --deadline 30d --ranks 3");
  EXPECT_EQ(plan.code, 2);
  EXPECT_EQ(plan.err, heads);
  const Outcome tune = run_program("commfuse-sim tune --model llama-3.1-8b --gpus 48 --ranks 3");
  EXPECT_EQ(tune.code, 2);
  EXPECT_EQ(tune.err, heads);
}

TEST(CommfuseSimPlan, AnImpossibleCountNamesItsPlaceAndNeighbors) {
  const OwnFolder folder;
  const std::string layouts =
      "'gpus.h100.count' is 1000, but no layout of llama-3.1-8b with batch 256 divides 1000 GPUs of dgx-h100-x2 "
      "evenly; choose ";
  const Outcome by_flag = run_program(
      "commfuse-sim plan --model llama-3.1-8b --tokens 500b --gpus h100 --price 2.5 --batch 256 --count 1000");
  EXPECT_EQ(by_flag.code, 2);
  EXPECT_TRUE(by_flag.err.starts_with("--count: " + layouts)) << by_flag.err;
  EXPECT_TRUE(by_flag.err.ends_with(" or 1024, or a batch that more degrees divide\n")) << by_flag.err;
  std::ofstream("ours.yaml") << "schema: commfuse.plan/1\nset: {model: llama-3.1-8b, batch: 256}\ntokens: 5e11\n"
                                "gpus:\n  h100:\n    hardware: dgx-h100-x2\n    price: 2.5\n"
                                "    price_date: 2026-11-01\n    count: 1000\n";
  const Outcome by_file = run_program("commfuse-sim plan ours.yaml");
  EXPECT_EQ(by_file.code, 2);
  EXPECT_TRUE(by_file.err.starts_with("ours.yaml:9:12: " + layouts)) << by_file.err;
}

TEST(CommfuseSimPlan, ByFlagsReadsPathsFromTheCurrentFolder) {
  const OwnFolder folder;
  fs::copy_file(COMMFUSE_SOURCE_DIR "/configs/models/llama-3.1-8b.yaml", "mine.yaml");
  fs::copy_file(COMMFUSE_SOURCE_DIR "/configs/hardware/h100-sxm.yaml", "node.yaml");
  const Outcome outcome = run_program(
      "commfuse-sim plan --model ./mine.yaml --tokens 500B --gpus ./node.yaml --price 2.5 --budget 9M -o json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const json plan = json::parse(outcome.out);
  EXPECT_EQ(plan.at("kinds").at(0).at("available"), 8);  // One node has no more GPUs.
}

TEST(CommfuseSimPlan, ByFlagsAcceptsSettingsAndFlagsOfOtherTools) {
  const Outcome outcome = run_program(by_flags + " --tp 4 --pp 2 --gbs 1 -o json");
  EXPECT_EQ(outcome.err.rfind("unknown flag '--gbs'; ", 0), 0U);
  const Outcome wrong = run_program(by_flags + " --tp 0 --precision fp64");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_EQ(wrong.err.rfind("--tp: '0' is out of range; choose 1 to 1M ranks\n--precision: unknown dtype 'fp64'; ", 0),
            0U)
      << wrong.err;
  const Outcome text = run_program(by_flags + " --tp 4 --pp 2");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("\n  model: llama-3.1-8b\n  ranks: 4\n  parallel.pipeline: 2\n"), std::string::npos)
      << text.out;
}

TEST(CommfuseSimPlan, TheReportOfAPlanByFlagsHasItsCommand) {
  const OwnFolder folder;
  EXPECT_EQ(run_program(by_flags + " --tp 4 --out page").code, 0);
  EXPECT_NE(
      contents_of("page/plan.html")
          .find("commfuse-sim plan --model llama-3.1-8b --ranks 4 --tokens 500b --gpus h100 --price 2.5 --budget 3m "
                "--out page"),
      std::string::npos);
}

TEST(CommfuseSimPlan, KeysOfAPlanAreExplainedAndInTheSchema) {
  const Outcome list = run_program("commfuse-sim config explain plan");
  EXPECT_EQ(list.code, 0);
  EXPECT_NE(list.out.find("plan.gpus.NAME.price_date "), std::string::npos) << list.out;
  const Outcome explanation = run_program("commfuse-sim config explain plan.limits.power");
  EXPECT_NE(explanation.out.find("in a file    power: \"10 MW\"\n"), std::string::npos) << explanation.out;
  const std::string preset = "0.42 with experts; otherwise 0.07 with a framework, 0.13 without";
  const Outcome computed = run_program("commfuse-sim config explain plan.model_error");
  EXPECT_NE(computed.out.find("default      " + preset + "\n"), std::string::npos) << computed.out;
  EXPECT_EQ(run_program("commfuse-sim config explain plan.deadlin").err,
            "unknown key 'plan.deadlin' of a plan; did you mean 'plan.deadline'?\n");
  EXPECT_EQ(run_program("commfuse-sim config explain plan.gpus.h100.price").err,
            "unknown key 'plan.gpus.h100.price' of a plan; did you mean 'plan.gpus.NAME.price'?\n");
  const json schema = json::parse(run_program("commfuse-sim schema plan").out);
  const json& properties = schema.at("properties");
  EXPECT_EQ(properties.at("failures").at("properties").at("per_gpu_hour").at("default"), "2e-5");
  EXPECT_TRUE(properties.at("model_error").at("description").get<std::string>().ends_with(". Default: " + preset));
  const json& gpus = properties.at("gpus").at("additionalProperties");
  EXPECT_EQ(gpus.at("required"), (json{"hardware", "price", "price_date"}));
  EXPECT_EQ(gpus.at("anyOf"), json::parse(R"([{"required": ["available"]}, {"required": ["count"]}])"));
  EXPECT_FALSE(properties.at("set").at("properties").contains("hardware"));
  EXPECT_EQ(schema.at("required"), (json{"tokens", "gpus", "schema"}));
}

}  // namespace
}  // namespace commfuse::test
