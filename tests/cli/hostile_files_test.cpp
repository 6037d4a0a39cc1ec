// SPDX-License-Identifier: Apache-2.0
// Tests 100 MB of each reader's worst input: the program exits with a message and uses less than 1 GiB of memory,
// however deeply the file is nested.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

constexpr std::size_t hostile_bytes = 100'000'000;
constexpr std::int64_t max_kib = 1 << 20;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool own_memory_only = false;
#else
constexpr bool own_memory_only = true;
#endif

/// The beginning of a file, and the text to repeat until the file is large.
struct Hostile {
  std::string_view name;
  std::string_view command;  ///< Contains FILE.
  std::string_view file;
  std::string_view begin;
  std::string_view repeated;
};

std::string with_file(std::string_view command, std::string_view file) {
  std::string text(command);
  return text.replace(text.find("FILE"), 4, file);
}

void write(const Hostile& hostile) {
  std::string block;
  while (block.size() < (1U << 20U)) {
    block += hostile.repeated;
  }
  std::ofstream out{std::string(hostile.file), std::ios::binary};
  out << hostile.begin;
  for (std::size_t written = hostile.begin.size(); written < hostile_bytes; written += block.size()) {
    out << block;
  }
}

struct Ended {
  int code = -1;
  std::int64_t peak_kib = 0;
};

/// Measures the program itself: `exec` replaces the shell with it.
Ended run_measured(const std::string& command) {
  const std::string line = "PATH=\"" COMMFUSE_BIN_DIR ":$PATH\" COMMFUSE_CONFIG_DIR=\"" COMMFUSE_SOURCE_DIR
                           "/configs\" exec " +
                           command + " >program.out 2>program.err </dev/null";
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));  // NOLINT(*-vararg)
    _exit(127);
  }
  int status = 0;
  rusage used{};
  wait4(child, &status, 0, &used);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, used.ru_maxrss};
}

class HostileFiles : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileFiles, AreRefusedWithinAGibibyte) {
  const OwnFolder folder;
  write(GetParam());
  const Ended ended = run_measured(with_file(GetParam().command, GetParam().file));
  const std::string message = contents_of("program.err");
  EXPECT_TRUE(ended.code == 1 || ended.code == 2) << ended.code << '\n' << message.substr(0, 400);
  EXPECT_NE(message.find(GetParam().file), std::string::npos) << message.substr(0, 400);
  EXPECT_LT(message.size(), 2000U) << "a sentence, not the file";
  if (own_memory_only) {
    EXPECT_LT(ended.peak_kib, max_kib);
  }
}

constexpr std::string_view run = "commfuse-sim run --config FILE";
constexpr std::string_view calibrate = "commfuse-sim calibrate --base h100-sxm --name mine FILE";
constexpr std::string_view record = R"({"schema": "commfuse.record/1", "runs": [)";
constexpr std::string_view report = "commfuse-sim report FILE";

constexpr std::array hostile_files{
    Hostile{"settings", run, "a.yaml", "", "seq: 8K\n"},
    Hostile{"settings_nested", run, "a.yaml", "seq: ", "["},
    Hostile{"sweep", "commfuse-sim sweep FILE --out out", "a.yaml", "schema: commfuse.sweep/1\naxes: {seq: [", "1K, "},
    Hostile{"model", "commfuse-sim run --model ./FILE", "config.json", "", "[[{\"a\":"},
    Hostile{"hardware", "commfuse-sim run --hardware ./FILE", "a.yaml", "schema: commfuse.hardware/1\n", "- x\n"},
    Hostile{"schedule", "commfuse-sim schedule check FILE", "a.yaml", "", "&a [*a, "},
    Hostile{"table_of_commas", "commfuse-sim score --data FILE", "a.csv", "", ","},
    Hostile{"table_of_rows", "commfuse-sim score --data FILE", "a.csv", "m,n,k,time_us\n", "1,1,1,1\n"},
    Hostile{"table_of_faulty_rows", "commfuse-sim score --data FILE", "a.csv", "hw,dtype,m,n,k,time_us\n",
            "H100,bf16,x,0,1,-1\n"},
    Hostile{"table_calibrated", calibrate, "a.csv", "hw,dtype,m,n,k,time_us\n", "H100,bf16,8,8,8,1\n"},
    Hostile{"header", calibrate, "a.csv", "", "a,"},
    Hostile{"nccl_tests_line", calibrate, "a.txt", "# nThread 1 nGpus 1\n", "1048576 "},
    Hostile{"nccl_tests_rows", calibrate, "a.txt", "", "  1048576  262144  float  sum  -1  1.0  1.0  1.0  x\n"},
    Hostile{"nccl_tests_json", calibrate, "a.json", "{\"results\": [", "{\"size\": 1, \"x\": []}, "},
    Hostile{"nccl_tests_nested", calibrate, "a.json", "{\"results\": ", "["},
    Hostile{"trace", calibrate, "a.json", "{\"traceEvents\": [", "{\"ph\": \"X\", \"args\": {}}, "},
    Hostile{"trace_nested", calibrate, "a.json", "{\"traceEvents\": [", "{\"a\": ["},
    Hostile{"trace_in_a_word", calibrate, "a.json", "{\"traceEvents\": [{\"name\": \"", "a"},
    Hostile{"trace_in_an_event", calibrate, "a.json", "{\"traceEvents\": [{\"args\": [", "1,"},
    Hostile{"record", calibrate, "a.json", record, "{},"},
    Hostile{"record_of_numbers", calibrate, "a.json", record, "1,"},
    Hostile{"record_nested", calibrate, "a.json", record, "["},
    Hostile{"record_compared", "commfuse-validate compare FILE", "a.json", record, "[],"},
    Hostile{"rows", report, "a.jsonl", "", "{}\n"},
    Hostile{"rows_of_one", report, "a.json", "", "[1,"},
    Hostile{"rows_in_a_list", report, "a.json", "[", "{},"},
    Hostile{"store", "commfuse-sim results FILE", "a.sqlite", "SQLite format 3", std::string_view("\0\x10", 2)},
    Hostile{"megatron", "commfuse-sim import megatron FILE --out out", "a.sh", "", "--num-layers 2 "},
    Hostile{"nemo", "commfuse-sim import nemo FILE --out out", "a.yaml", "model:\n", "  num_layers: 2\n"},
    Hostile{"torchtitan", "commfuse-sim import torchtitan FILE --out out", "a.toml", "", "[a.b]\n"},
    Hostile{"torchtitan_nested", "commfuse-sim import torchtitan FILE --out out", "a.toml", "a = ", "["},
    Hostile{"deepspeed", "commfuse-sim import deepspeed FILE --out out --gpus 1", "a.json", "{\"a\": ", "["},
    Hostile{"plan", "commfuse-sim plan FILE", "a.yaml", "", "a: {b: "},
};

INSTANTIATE_TEST_SUITE_P(Reader, HostileFiles, ::testing::ValuesIn(hostile_files),
                         [](const auto& hostile) { return std::string(hostile.param.name); });

}  // namespace
}  // namespace commfuse::test
