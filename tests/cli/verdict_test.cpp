// SPDX-License-Identifier: Apache-2.0
// Tests both programs on logs of nodes, as an operator runs them: the output and the exit codes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "model/config/catalogue.h"
#include "model/expect/message.h"
#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

/// Returns a log of two collectives of eight H100, each `factor` times as long as the model predicts.
std::string log_of(const std::string& host, double factor, const std::string& wrong = "0") {
  const Machine machine = load_machine("h100-sxm");
  std::string text;
  for (const LinkOp op : {LinkOp::all_reduce, LinkOp::all_gather}) {
    text += fmt::format(
        "# nccl-tests version 2.17.6 nccl-headers=22903 nccl-library=22903\n"
        "# Collective test starting: {}_perf\n# nThread 1 nGpus 8\n# Using devices\n",
        name_of(op));
    for (int rank = 0; rank < 8; ++rank) {
      text += fmt::format("#  Rank {:2} Group  0 Pid 42 on {} device {:2} [0x07] NVIDIA H100 80GB HBM3\n", rank, host,
                          rank);
    }
    for (std::int64_t bytes = 1024; bytes <= std::int64_t{4} << 30U; bytes *= 4) {
      const double us = factor * to_microseconds(message_time(machine, {op, 8, 1, {bytes}}));
      text +=
          fmt::format("{:12} {:12} float sum -1 {:.3f} 1.0 1.0 {} {:.3f} 1.0 1.0 0\n", bytes, bytes / 4, us, wrong, us);
    }
  }
  return text;
}

void write(const std::string& name, const std::string& text) { std::ofstream(name) << text; }

TEST(VerdictCommand, ExitsWithZeroFourAndThree) {
  const OwnFolder folder;
  write("good.txt", log_of("good", 1.0));
  write("bad.txt", log_of("bad", 2.0));
  write("other.txt", "no log\n");
  const auto code = [](const std::string& files) {
    return run_program("commfuse-validate verdict " + files + " --expect h100-sxm").code;
  };
  EXPECT_EQ(code("good.txt"), 0);
  EXPECT_EQ(code("good.txt bad.txt"), 4);
  EXPECT_EQ(code("good.txt other.txt"), 3);
  EXPECT_EQ(code("bad.txt other.txt"), 4);
  EXPECT_EQ(code("good.txt good.txt"), 2);
  EXPECT_EQ(code("nowhere.txt"), 3);
}

TEST(VerdictCommand, ATooShortLogIsUndecided) {
  const OwnFolder folder;
  const std::string whole = log_of("short", 1.0);
  write("short.txt", whole.substr(0, whole.find("# nccl-tests", 10)));
  const Outcome outcome = run_program("commfuse-validate verdict short.txt --expect h100-sxm");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.out.find("not enough to decide"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("0 healthy, 0 bad, 1 undecided"), std::string::npos) << outcome.out;
}

TEST(VerdictCommand, JsonHasOneObjectPerNode) {
  const OwnFolder folder;
  write("a.txt", log_of("node-a", 1.0));
  write("b.txt", log_of("node-b", 1.0, "3"));
  const Outcome outcome = run_program("commfuse-validate verdict a.txt b.txt --expect h100-sxm -o json --rows");
  EXPECT_EQ(outcome.code, 4);
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0]["schema"], "commfuse.verdict/1");
  EXPECT_EQ(json[0]["node"], "node-a");
  EXPECT_EQ(json[0]["health"], "healthy");
  EXPECT_EQ(json[0]["nccl_versions"][0], "2.29.3");
  EXPECT_EQ(json[0]["rows"].size(), 24U);
  EXPECT_NEAR(json[0]["rows"][11]["measured_us"].get<double>(), json[0]["rows"][11]["expected_us"].get<double>(), 0.01);
  EXPECT_EQ(json[1]["health"], "bad");
  EXPECT_EQ(json[1]["severity"], "critical");
  EXPECT_EQ(json[1]["wrong_results"].size(), 24U);
}

TEST(VerdictCommand, JunitPrometheusAndMarkdownNameTheBadNode) {
  const OwnFolder folder;
  write("a.txt", log_of("node-a", 1.0));
  write("b.txt", log_of("node \"b\"", 2.0));
  const auto out = [](const std::string& form) {
    return run_program("commfuse-validate verdict a.txt b.txt --expect h100-sxm --by file -o " + form).out;
  };
  EXPECT_NE(out("junit").find("tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\""), std::string::npos)
      << out("junit");
  EXPECT_NE(out("prometheus").find("commfuse_node_bad{node=\"a.txt\",fault=\"\"} 0\n"), std::string::npos);
  EXPECT_NE(out("prometheus").find("commfuse_node_bad{node=\"b.txt\",fault=\"uniform_slowdown\"} 1\n"),
            std::string::npos);
  EXPECT_NE(out("markdown").find("| b.txt | bad | <1% | critical | 2.00 |"), std::string::npos) << out("markdown");
}

TEST(VerdictCommand, RefusesUnsupportedRequests) {
  const OwnFolder folder;
  write("a.txt", log_of("node-a", 1.0));
  const auto error_of = [](const std::string& flags) {
    return run_program("commfuse-validate verdict a.txt " + flags).err;
  };
  EXPECT_EQ(error_of("--expect h100-sxm --rows"), "--rows adds measurements to JSON only; add -o json\n");
  EXPECT_EQ(error_of("--expect h100-sxm --false-alarms 60%"),
            "--false-alarms: '60%' is not a share of 0.0001% to 25%; write one, as in 1%\n");
  EXPECT_NE(error_of("--expect h100-smx").find("h100-sxm"), std::string::npos);
}

TEST(VerdictCommand, AFileOfAJobThatCannotBeReadIsNamedWithoutAMachine) {
  const OwnFolder folder;
  write("bad.csv", "rank,step,time_us\n0,0,abc\n");
  const Outcome outcome = run_program("commfuse-validate verdict bad.csv");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.err, "bad.csv:2: time_us: 'abc' is not a time; write a number of more than 0\n");
}

TEST(VerdictCommand, RefusesEmptyFoldersAndIgnoresBrokenLinks) {
  const OwnFolder folder;
  std::filesystem::create_directory("logs");
  std::filesystem::create_symlink("loop", "logs/loop");
  const Outcome empty = run_program("commfuse-validate verdict logs --expect h100-sxm");
  EXPECT_EQ(empty.code, 2);
  EXPECT_EQ(empty.err, "logs: the folder has no files; give the folder of the logs\n");
  write("logs/good.txt", log_of("good", 1.0));
  EXPECT_EQ(run_program("commfuse-validate verdict logs --expect h100-sxm").code, 0);
}

TEST(VerdictCommand, NeverReplacesALog) {
  const OwnFolder folder;
  write("good.txt", log_of("good", 1.0));
  for (const char* const files : {"good.txt", "other.txt --healthy good.txt"}) {
    const Outcome outcome =
        run_program(std::string("commfuse-validate verdict --expect h100-sxm --out ./good.txt ") + files);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err, "./good.txt cannot be written: the command reads this file; choose another path\n");
  }
  EXPECT_EQ(contents_of("good.txt"), log_of("good", 1.0));
}

TEST(VerdictCommand, DataOfHealthyNodesThatIsNotUsedIsNamed) {
  const OwnFolder folder;
  write("log.txt", log_of("node-a", 1.0));
  std::string broken = log_of("node-b", 1.0);
  broken.replace(broken.find("float sum -1 "), 13, "float sum -1 x");
  write("good.txt", broken);
  const Outcome outcome =
      run_program("commfuse-validate verdict log.txt --expect h100-sxm --healthy good.txt -o markdown");
  EXPECT_NE(outcome.out.find("\nNot judged: good.txt: rows that cannot be read, the first: line "), std::string::npos)
      << outcome.out;
}

/// Returns the output of nvbandwidth -j for eight GPUs on one host; one pair has only `share` of the others' rate.
std::string bandwidth_of(const std::string& host, double share) {
  nlohmann::json devices = nlohmann::json::array();
  nlohmann::json rows = nlohmann::json::array();
  double sum = 0.0;
  for (int a = 0; a < 8; ++a) {
    devices.push_back(fmt::format("{}: NVIDIA H100 80GB HBM3 (00000000:0{}:00): ({})", a, a, host));
    nlohmann::json row = nlohmann::json::array();
    for (int b = 0; b < 8; ++b) {
      const double rate = std::min(a, b) == 3 && std::max(a, b) == 5 ? 392.0 * share : 392.0;
      sum += a == b ? 0.0 : rate;
      row.push_back(a == b ? std::string("N/A") : fmt::format("{:.2f}", rate));
    }
    rows.push_back(row);
  }
  const nlohmann::json test{{"name", "device_to_device_memcpy_read_ce"},
                            {"status", "Passed"},
                            {"bandwidth_description", "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)"},
                            {"bandwidth_matrix", rows},
                            {"sum", sum}};
  const nlohmann::json document{
      {"nvbandwidth",
       {{"version", "v0.8"}, {"GPU Device list", devices}, {"testcases", nlohmann::json::array({test})}}}};
  return document.dump();
}

TEST(VerdictCommand, NvbandwidthNamesTheSlowPair) {
  const OwnFolder folder;
  write("logs.txt", log_of("node-a", 1.0));
  write("good.json", bandwidth_of("node-a", 1.0));
  EXPECT_EQ(run_program("commfuse-validate verdict logs.txt good.json --expect h100-sxm").code, 0);
  EXPECT_EQ(run_program("commfuse-validate verdict good.json --expect h100-sxm").code, 0);
  write("bad.json", bandwidth_of("node-a", 0.5));
  const Outcome outcome = run_program("commfuse-validate verdict logs.txt bad.json --expect h100-sxm -o json");
  EXPECT_EQ(outcome.code, 4);
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["where"], "inside node-a, GPU 3 – GPU 5");
  EXPECT_EQ(json[0]["suspects"][0]["subject"], "GPU 3 – GPU 5");
  EXPECT_EQ(json[0]["suspects"][0]["fault"], "slow_link");
  EXPECT_EQ(json[0]["copies"][0]["subject"], "GPU 3 – GPU 5");
  EXPECT_EQ(json[0]["copies"][0]["copies"], 56);
}

TEST(VerdictCommand, FailedTestsOfDcgmAreBad) {
  const OwnFolder folder;
  write("logs.txt", log_of("node-a", 1.0));
  write("node-a.dcgm.json",
        R"({"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [{"name": "memory", "results": [
            {"entity_group": "GPU", "entity_group_id": 1, "entity_id": 6, "status": "Fail",
             "warnings": [{"warning": "wrong bits", "error_id": 1, "error_category": 1, "error_severity": 2}]}]}]}]},
            "metadata": {"version": "4.2.3"}})");
  const Outcome outcome = run_program("commfuse-validate verdict logs.txt node-a.dcgm.json --expect h100-sxm -o json");
  EXPECT_EQ(outcome.code, 4);
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["why"],
            "dcgmi diag memory failed on GPU 6: GPU memory gives wrong values or cannot be allocated (wrong bits)");
  EXPECT_EQ(json[0]["severity"], "critical");
  EXPECT_EQ(json[0]["findings"][0]["subject"], "GPU 6");
}

/// Returns a table of six ranks and eight steps; rank 4 computes `factor` times as long as the others.
std::string steps_of(double factor) {
  std::string text = "rank,step,time_ms,compute_ms,host\n";
  for (int step = 0; step < 8; ++step) {
    for (int rank = 0; rank < 6; ++rank) {
      const double compute = (300.0 + rank % 3 + step % 2) * (rank == 4 ? factor : 1.0);
      text += fmt::format("{},{},{},{},node-{}\n", rank, step, 300.0 * factor + 80.0, compute, rank / 2);
    }
  }
  return text;
}

TEST(VerdictCommand, JobsNeedNoMachineAndNameTheRank) {
  const OwnFolder folder;
  write("good.csv", steps_of(1.0));
  write("bad.csv", steps_of(1.5));
  EXPECT_EQ(run_program("commfuse-validate verdict good.csv").code, 0);
  const Outcome outcome = run_program("commfuse-validate verdict bad.csv");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_NE(outcome.out.find("rank 4 on node-2 computes slowly"), std::string::npos) << outcome.out;
  const auto json = nlohmann::json::parse(run_program("commfuse-validate verdict good.csv bad.csv -o json").out);
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0]["health"], "healthy");
  EXPECT_EQ(json[1]["job"], "bad.csv");
  EXPECT_EQ(json[1]["suspects"][0]["rank"], 4);
  EXPECT_EQ(json[1]["suspects"][0]["host"], "node-2");
  EXPECT_EQ(json[1]["suspects"][0]["fault"], "slow_compute");
  const auto out = [](const std::string& form) {
    return run_program("commfuse-validate verdict good.csv bad.csv -o " + form).out;
  };
  EXPECT_NE(out("junit").find("tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\""), std::string::npos);
  EXPECT_NE(out("prometheus").find("commfuse_rank_bad{job=\"bad.csv\",rank=\"4\",fault=\"slow_compute\"} 1\n"),
            std::string::npos);
  EXPECT_NE(out("markdown").find("| bad.csv | bad | <1% |"), std::string::npos) << out("markdown");
  EXPECT_EQ(run_program("commfuse-validate verdict good.csv --healthy bad.csv").err,
            "--healthy: FILES describe jobs, whose ranks are compared with each other; remove --healthy\n");
  write("log.txt", log_of("node-a", 1.0));
  EXPECT_EQ(run_program("commfuse-validate verdict log.txt").err,
            "--expect: name the machine to judge nodes against, as in --expect h100-sxm\n");
}

TEST(ExpectCommand, PrintsTheSameFiguresInEveryForm) {
  const std::string command = "commfuse-sim expect --collective all_reduce --sizes 2G -o ";
  const auto json = nlohmann::json::parse(run_program(command + "json").out);
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["schema"], "commfuse.expectation/1");
  EXPECT_EQ(json[0]["bytes"], std::int64_t{1} << 31U);
  EXPECT_EQ(json[0]["nccl_kernel"], "NVLS");
  EXPECT_GT(json[0]["busbw_gb_s"], json[0]["busbw_floor_gb_s"]);
  const std::string time = json[0]["time_us"].dump();
  EXPECT_NE(run_program(command + "csv").out.find("," + time + ","), std::string::npos);
  EXPECT_NE(run_program(command + "yaml").out.find("  time_us: " + time + "\n"), std::string::npos);
}

TEST(ExpectCommand, HasGemmsAndCopiesOfOneGpu) {
  const auto json = nlohmann::json::parse(run_program("commfuse-sim expect --gemm 8Kx4Kx2K --copy 1G -o json").out);
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0]["kernel"], "gemm");
  EXPECT_EQ(json[0]["m"], 8192);
  EXPECT_EQ(json[0]["k"], 2048);
  // The rate is 2 m n k over the time.
  EXPECT_NEAR(json[0]["rate_per_s"].get<double>(), 2.0 * 8192 * 4096 * 2048 / (1e-6 * json[0]["time_us"].get<double>()),
              1e-5 * json[0]["rate_per_s"].get<double>());
  EXPECT_EQ(json[1]["kernel"], "copy");
  EXPECT_EQ(json[1]["bytes"], std::int64_t{1} << 30U);
  EXPECT_TRUE(json[1]["m"].is_null());
}

TEST(ExpectCommand, LayersAndStepsHaveTheRangesOfRun) {
  const std::string layer = " --model llama-3.1-8b --set seq=8K --ranks 8 --hardware h100-sxm -o json";
  const auto expected = nlohmann::json::parse(run_program("commfuse-sim expect --scope layer" + layer).out);
  const auto run = nlohmann::json::parse(
      run_program("commfuse-sim run --scope layer --model llama-3.1-8b --seq 8K --ranks 8 --hardware h100-sxm -o json")
          .out);
  ASSERT_GE(expected.size(), 1U);
  EXPECT_EQ(expected[0]["schema"], "commfuse.expectation_run/1");
  EXPECT_EQ(expected[0]["scope"], "layer");
  EXPECT_EQ(expected[0]["ranks"], 8);
  EXPECT_EQ(expected[0]["seq"], 8192);
  EXPECT_NEAR(expected[0]["time_us"].get<double>(), run[0]["makespan_us"].get<double>(), 0.01);
  EXPECT_LT(expected[0]["fast_us"], expected[0]["time_us"]);
  EXPECT_GT(expected[0]["slow_us"], expected[0]["time_us"]);
  const auto wider =
      nlohmann::json::parse(run_program("commfuse-sim expect --scope layer --false-alarms 0.1%" + layer).out);
  EXPECT_GT(wider[0]["slow_us"], expected[0]["slow_us"]);
  const auto step = nlohmann::json::parse(
      run_program("commfuse-sim expect --scope step --model llama-3.1-8b --cluster dgx-h100-x2 -o json").out);
  ASSERT_GE(step.size(), 1U);
  EXPECT_EQ(step[0]["scope"], "step");
  EXPECT_GT(step[0]["slow_us"], step[0]["time_us"]);
}

TEST(ExpectCommand, WarnsOfStepsThatDoNotFitInMemory) {
  const std::string step = "commfuse-sim expect --scope step --set batch=8 --set seq=4K --model ";
  const Outcome large = run_program(step + "llama-3.1-405b");
  EXPECT_EQ(large.code, 0);
  EXPECT_EQ(large.err.find("warning: Out of memory"), 0U) << large.err;
  EXPECT_EQ(std::count(large.err.begin(), large.err.end(), '\n'), 1) << large.err;
  EXPECT_EQ(run_program(step + "llama-3.1-8b").err, "");
  const Outcome layer = run_program("commfuse-sim expect --scope mlp --set seq=8M --set strategy.name=serial");
  EXPECT_EQ(layer.err.find("warning: Out of memory: a GPU needs "), 0U) << layer.err;
}

TEST(ExpectCommand, FlagsOfScopesTakePrecedenceOverSet) {
  const Outcome outcome = run_program(
      "commfuse-sim expect --scope decode --model llama-3.1-8b --ranks 1 --set model=llama-3.1-70b --set ranks=8 "
      "--set seq=1 --set hardware=b200");
  EXPECT_TRUE(outcome.out.starts_with("decode of llama-3.1-8b on b200-sxm, 1 GPU, batch 1, 1 token\n")) << outcome.out;
  EXPECT_EQ(run_program("commfuse-sim expect --scope layer --ranks 2,4").err,
            "--ranks: '2,4' is not a whole number; write one, such as 8\n");
}

TEST(ExpectCommand, ListsEachSizeAndCollectiveOnce) {
  const std::string command = "commfuse-sim expect -o csv --hardware h100-sxm ";
  EXPECT_EQ(run_program(command + "--collective all_gather,all_gather --ranks 8,8 --sizes 1M,2M,1024K").out,
            run_program(command + "--collective all_gather --ranks 8 --sizes 1M,2M").out);
}

TEST(ExpectCommand, ScopesFollowTheEnvironmentAsRunDoes) {
  const std::string command = "COMMFUSE_HARDWARE=b200-sxm commfuse-sim expect --scope mlp --model llama-3.1-8b";
  EXPECT_TRUE(run_program(command).out.starts_with("mlp of llama-3.1-8b on b200-sxm, ")) << run_program(command).out;
  EXPECT_TRUE(run_program(command + " --set hardware=h100-sxm").out.starts_with("mlp of llama-3.1-8b on h100-sxm, "));
}

TEST(ExpectCommand, LayersUnderJitterTakeTheirMeanTime) {
  const auto first_row = [](const std::string& command) {
    const Outcome outcome = run_program("commfuse-sim " + command + " -o json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out).at(0);
  };
  const double mean = first_row("run --scope mlp --seq 8K --strategy serial --jitter default").at("mean_us");
  const nlohmann::json expected =
      first_row("expect --scope mlp --set seq=8K --set strategy.name=serial --set jitter=default");
  EXPECT_NEAR(expected.at("time_us"), mean, 1e-5 * mean);
}

TEST(ExpectCommand, RefusesGroupsThatAreTooLargeOrTooSmall) {
  const auto error_of = [](const std::string& flags) { return run_program("commfuse-sim expect " + flags).err; };
  // 131,072 nodes of 8 GPUs have 1M GPUs, the limit of --ranks.
  EXPECT_EQ(error_of("--cluster dgx-h100-x2 --nodes 300000000"),
            "--nodes: 300000000 is too many; use 131072 or fewer\n");
  EXPECT_EQ(error_of("--gpus-per-node 1"),
            "a collective takes at least 2 GPUs, and only 1 of h100-sxm takes part; choose more, or a cluster such as "
            "dgx-h100-x2\n");
}

TEST(ExpectCommand, ScopesRefuseFlagsOfCollectives) {
  const auto error_of = [](const std::string& flags) { return run_program("commfuse-sim expect " + flags).err; };
  EXPECT_EQ(error_of("--scope layer --sizes 1G"),
            "--sizes: --scope predicts layers and steps instead of collectives; remove --sizes\n");
  EXPECT_EQ(error_of("--scope layer --nvls off"),
            "--nvls: not used with --scope, which takes the settings of run from --set; remove --nvls\n");
  EXPECT_EQ(error_of("--scope layer --copy 1G"), "--copy: --scope predicts layers and steps only; remove --copy\n");
  EXPECT_EQ(error_of("--model llama-3.1-8b"), "--model: requires --scope; remove --model\n");
  EXPECT_NE(error_of("--scope lyer").find("layer"), std::string::npos);
}

TEST(ExpectCommand, SupportsAnotherNcclAndAPartOfEachNode) {
  const std::string command = "commfuse-sim expect --collective all_reduce --sizes 1G ";
  const auto floor = [&](const std::string& flags) {
    return nlohmann::json::parse(run_program(command + flags + " -o json").out)[0]["busbw_floor_gb_s"].get<double>();
  };
  EXPECT_EQ(floor("--nccl 2.29.3"), floor(""));
  EXPECT_LT(floor("--nccl 2.23"), floor(""));
  EXPECT_NE(
      run_program(command + "--nccl 2.23")
          .out.find("\nNCCL 2.23; times were fitted to 2.29.2: ranges have 3% more error, 7% for small\n  messages\n"),
      std::string::npos);
  EXPECT_EQ(run_program("commfuse-sim expect --cluster dgx-h100-x4 --nodes 0").err,
            "--nodes: 0 is below 1; use 1 or more\n");
  EXPECT_EQ(run_program(command + "--nccl new").err,
            "--nccl: 'new' is not a version of NCCL; write one, as in 2.28.9\n");
  const auto part = nlohmann::json::parse(
      run_program(
          "commfuse-sim expect --cluster dgx-h100-x4 --gpus-per-node 2 --collective all_gather --sizes 1G -o json")
          .out);
  EXPECT_EQ(part[0]["ranks"], 8);
  EXPECT_EQ(part[0]["nodes"], 4);
}

TEST(ExpectCommand, AcceptsSizesOfNcclTestsButNotTogetherWithSizes) {
  const Outcome outcome = run_program("commfuse-sim expect --collective all_gather -b 1024 -e 64K -f 4 -o csv");
  EXPECT_EQ(std::ranges::count(outcome.out, '\n'), 5);
  const auto error_of = [](const std::string& flags) { return run_program("commfuse-sim expect " + flags).err; };
  EXPECT_EQ(error_of("--sizes 1K -b 8"), "--sizes cannot be combined with -b and -e; keep one of them\n");
  EXPECT_EQ(error_of("--collective broadcast"),
            "--collective: unknown collective 'broadcast'; known collectives: all_gather, reduce_scatter, all_reduce, "
            "all_to_all, send_recv\n");
  EXPECT_EQ(error_of("--thresholds aicr -o json"),
            "--output: --thresholds prints the checker's own format; remove --output\n");
  EXPECT_EQ(error_of("--thresholds aicr --sizes 1G"),
            "--sizes: --thresholds uses the sizes that the checker measures; remove --sizes\n");
  EXPECT_EQ(error_of("--gemm 8x8x8 --ranks 4"), "--ranks: --gemm and --copy replace collectives; remove --ranks\n");
  EXPECT_EQ(error_of("--copy 1G --nvls off"), "--nvls: --gemm and --copy use a single GPU; remove --nvls\n");
  EXPECT_EQ(error_of("--dtype fp8"), "--dtype: requires --gemm; add --gemm, or remove --dtype\n");
  EXPECT_EQ(error_of("--gemm 8Kx8K"),
            "--gemm: '8Kx8K' is not a GEMM; write m, n and k up to 16M, as in 4096x8192x8192\n");
  EXPECT_EQ(error_of("--nodes 2"), "--nodes: h100-sxm has no network; use a cluster such as dgx-h100-x2\n");
}

}  // namespace
}  // namespace commfuse::test
