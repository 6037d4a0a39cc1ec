// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "tests/cli/program.h"
#include "tests/contents_of.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

TEST(CommfuseSimWhy, BreaksDownTheFastestAndNamesItsRivals) {
  const Outcome outcome = run_program("commfuse-sim why --seq 2K --ranks 8");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("sure)"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("\nSensitivity: a parameter"), std::string::npos);
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(CommfuseSimWhy, StatesThePercentilesUnderJitter) {
  const std::string settings = " --seq 2K --strategy serial --jitter default";
  const Outcome outcome = run_program("commfuse-sim why" + settings);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto rows = nlohmann::json::parse(run_program("commfuse-sim run -o json" + settings).out);
  const double p50 = rows.at(0).at("p50_us");
  std::ostringstream sentence;
  sentence << "\nUnder jitter 'default': p50 " << std::fixed << std::setprecision(1) << p50 << ", p99 ";
  EXPECT_NE(outcome.out.find(sentence.str()), std::string::npos) << outcome.out;
  EXPECT_EQ(run_program("commfuse-sim why --seq 2K --strategy serial").out.find("jitter"), std::string::npos);
}

TEST(CommfuseSimWhy, NamesTheLimitOfAMemoryBoundOp) {
  const auto limits = [](const std::string& seq) {
    const Outcome outcome =
        run_program("commfuse-sim why --model llama-3.1-8b --scope layer --strategy serial -o json --seq " + seq);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::set<std::string> words;
    const auto report = nlohmann::json::parse(outcome.out);
    for (const nlohmann::json& op : report.at("ops")) {
      if (op.at("shape").get<std::string>().starts_with("memory-bound")) {
        words.insert(op.at("how").get<std::string>());
      }
    }
    return words;
  };
  EXPECT_EQ(limits("256"), std::set<std::string>{"the shortest kernel sets most of the time"});
  EXPECT_EQ(limits("128K"), std::set<std::string>{"HBM traffic sets the time"});
}

TEST(CommfuseSimWhy, ExchangesOfAnInnerRingStayInTheirNode) {
  const auto wires = [](const std::string& inner) {
    const Outcome outcome = run_program(
        "commfuse-sim why --hardware dgx-h100-x2 --ranks 16 --scope gate_up --strategy commfuse --form ring --seq 8K "
        "-o json --inner " +
        inner);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::set<bool> across;  // contains true if an exchange goes over the network, false if one does not
    const auto report = nlohmann::json::parse(outcome.out);
    for (const nlohmann::json& op : report.at("ops")) {
      if (op.at("shape").get<std::string>().find("exchange") != std::string::npos) {
        across.insert(op.at("how").get<std::string>().starts_with("over the network between nodes"));
      }
    }
    return across;
  };
  EXPECT_EQ(wires("1"), std::set<bool>{true});
  EXPECT_EQ(wires("8"), (std::set<bool>{false, true}));
}

TEST(CommfuseSimWhy, ResultIsTheRowOfRun) {
  const Outcome why = run_program("commfuse-sim why --seq 8K --strategy serial -o json");
  const Outcome run = run_program("commfuse-sim run --seq 8K --strategy serial -o jsonl");
  ASSERT_EQ(why.code, 0) << why.err;
  ASSERT_EQ(run.code, 0) << run.err;
  nlohmann::json row = nlohmann::json::parse(run.out);
  row.erase("verdict");  // The verdict is about several rows.
  EXPECT_EQ(nlohmann::json::parse(why.out)["result"], row);
}

TEST(CommfuseSimWhy, ExplainsTheOnlyImplementationEvenIfItLoses) {
  for (const auto& [implementation, rest] :
       {std::pair("te", " --scope out_proj --seq 8K"), {"flux", " --scope down"}}) {
    const Outcome outcome = run_program(std::string("commfuse-sim why --as ") + implementation + rest);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find(std::string("\n") + implementation + " takes "), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find(" more time than serial "), std::string::npos) << outcome.out;
  }
  // A chosen strategy competes with the implementation.
  const Outcome both = run_program("commfuse-sim why --as flux --strategy serial --scope down");
  ASSERT_EQ(both.code, 0) << both.err;
  EXPECT_NE(both.out.find("\nserial takes "), std::string::npos) << both.out;
}

TEST(CommfuseSimWhy, ExplainsAScheduleFromAFile) {
  const Outcome why = run_program("commfuse-sim why --schedule doubling --seq 8K -o json");
  ASSERT_EQ(why.code, 0) << why.err;
  const nlohmann::json explained = nlohmann::json::parse(why.out);
  nlohmann::json row = nlohmann::json::parse(run_program("commfuse-sim run --schedule doubling --seq 8K -o jsonl").out);
  row.erase("verdict");
  EXPECT_EQ(explained.at("result"), row);
  EXPECT_EQ(row.at("strategy"), "doubling");
  EXPECT_FALSE(explained.at("ops").empty());
  EXPECT_FALSE(explained.at("holds").empty());
  const Outcome text = run_program("commfuse-sim why --schedule doubling --strategy serial --seq 8K");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("doubling (doubling.yaml) takes "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find(" less time than serial"), std::string::npos) << text.out;
}

TEST(CommfuseSimWhy, RefusesFilesOfDifferentPoints) {
  const OwnFolder folder;
  const Outcome shown = run_program("commfuse-sim schedule show --strategy serial --scope qkv --ranks 2 -o yaml");
  ASSERT_EQ(shown.code, 0) << shown.err;
  std::ofstream("two.yaml") << shown.out;
  const Outcome outcome = run_program("commfuse-sim why --schedule doubling --schedule ./two.yaml");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "the schedule files differ in ranks; name only files with the same ranks\n");
}

TEST(CommfuseSimWhy, AFileThatFailsItsProofIsNotExplained) {
  const OwnFolder folder;
  std::string text = contents_of(COMMFUSE_SOURCE_DIR "/configs/schedules/doubling.yaml");
  const std::string unfused = "unfused: [gemm: {m: tokens*4";
  text.replace(text.find(unfused), unfused.size(), "unfused: [gemm: {m: tokens*2");
  std::ofstream("short.yaml") << text;
  const Outcome outcome = run_program("commfuse-sim why --schedule ./short.yaml");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            "./short.yaml: unfused has 2 blocks of GEMM tokens x qkv x hidden per rank, but the final contents need 4; "
            "list the work of one rank before any cutting\n");
}

TEST(CommfuseSimWhy, ANumberOfParametersIsAWholeNumber) {
  for (const std::string text : {"-1", "1.5", "many"}) {
    const Outcome outcome = run_program("commfuse-sim why --seq 2K --ranks 2 --most " + text);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err, "--most: '" + text + "' is not a number of parameters; write a whole number, 0 or more\n");
  }
}

TEST(CommfuseSimWhy, HasOnlyFlagsThatLayersUse) {
  const std::string help = run_program("commfuse-sim why --help-all").out;
  EXPECT_NE(help.find("\n  --strategy "), std::string::npos) << help;
  EXPECT_EQ(help.find("\n  --pipeline "), std::string::npos) << help;
}

TEST(CommfuseSimWhy, OffersOnlyTheScopesOfLayers) {
  for (const char* command : {"why", "schedule show", "schedule export"}) {
    const std::string help = run_program(std::string("commfuse-sim ") + command + " --help-all").out;
    EXPECT_NE(help.find("data_parallel"), std::string::npos) << help;
    EXPECT_EQ(help.find("prefill"), std::string::npos) << help;
  }
  EXPECT_NE(run_program("commfuse-sim run --help-all").out.find("prefill"), std::string::npos);
}

TEST(CommfuseSimWhy, RefusesWholeModels) {
  const Outcome outcome = run_program("commfuse-sim why --scope step");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("scope step is a whole model"), std::string::npos) << outcome.err;
}

TEST(CommfuseSimWhy, NamesTheKernelThatSumsInsideANode) {
  const auto kernel_of = [](const std::string& seq) {
    const Outcome outcome = run_program(
        "commfuse-sim why --scope mlp_ar --all-reduce-kernel vllm --hardware h100-sxm --strategy serial --seq " + seq);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::size_t line = outcome.out.find("all-reduce of ");
    const std::size_t begin = outcome.out.find_first_not_of(' ', outcome.out.find('\n', line) + 1);
    return outcome.out.substr(begin, outcome.out.find('\n', begin) - begin);
  };
  EXPECT_EQ(kernel_of("64"), "vllm's own kernel");
  EXPECT_EQ(kernel_of("64K").find("vllm"), std::string::npos);  // NCCL sums large tensors.
}

TEST(CommfuseSimWhy, SumsOfAnImplementationAreInTheSwitch) {
  const Outcome outcome = run_program("commfuse-sim why --scope mlp_ar --model llama-3.3-70b --seq 8K --as tokenweave");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("one kernel that sums in the switch"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("inside the kernel that sums in the switch"), std::string::npos);
  EXPECT_EQ(outcome.out.find("NCCL's ring"), std::string::npos);
}

}  // namespace
}  // namespace commfuse::test
