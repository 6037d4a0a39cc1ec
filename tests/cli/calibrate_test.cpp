// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "tests/cli/program.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;

class CalibrateCommand : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  /// Returns messages between a pair of GPUs that take 10 us plus their bytes at 100 GB/s.
  std::string exchanges(const std::string& more = "") const {
    std::string text = "device,op,ngpus,devices_per_node,bytes,median_us\n";
    for (std::int64_t bytes = 1 << 10; bytes <= std::int64_t{1} << 30; bytes *= 2) {
      text += fmt::format("box,send_recv,2,2,{},{}\n", bytes, 10.0 + static_cast<double>(bytes) / 100e3);
    }
    return write("p2p.csv", text + more);
  }
  std::string command(const std::string& more) const {
    return "commfuse-sim calibrate --base h100-sxm --name box --out " + out() + " " + more;
  }
  std::string out() const { return (folder_ / "box.yaml").string(); }
  fs::path folder_ = fs::temp_directory_path() / ("commfuse-calibrate-cli-" + std::to_string(getpid()));
};

TEST_F(CalibrateCommand, WritesAHardwareFileThatRunAccepts) {
  const Outcome outcome = run_program(command(exchanges()));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("exchanges, from p2p.csv"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("held out"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("wrote " + out()), std::string::npos) << outcome.out;
  const Outcome run = run_program("commfuse-sim run --model llama-3.1-8b --ranks 8 --seq 4K --hardware " + out());
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST_F(CalibrateCommand, ItsLinesFitATerminal) {
  const auto printed_for = [&](std::int64_t largest) {
    std::string text = "device,op,ngpus,devices_per_node,bytes,median_us\n";
    for (std::int64_t bytes = 1 << 10; bytes <= largest; bytes *= 2) {  // 480 GB/s, but the links have 450 GB/s.
      text += fmt::format("box,send_recv,2,2,{},{}\n", bytes, 10.0 + static_cast<double>(bytes) / 480e3);
    }
    fs::remove(out());
    return run_program(command(write("fast.csv", text))).out;
  };
  const std::string many = printed_for(std::int64_t{1} << 30);
  EXPECT_NE(many.find("\n    limited to the nominal_rate of the link, which the rows exceed: rate,\n"
                      "      small.rate\n"),
            std::string::npos)
      << many;
  EXPECT_NE(many.find("\n    held out       2 rows, error "), std::string::npos) << many;
  const std::string few = printed_for(std::int64_t{1} << 22);
  EXPECT_NE(few.find("\n    held out       1 row,  error "), std::string::npos) << few;
}

TEST_F(CalibrateCommand, KernelsOfAFrameworkBelongToTheNewMachine) {
  // One shot takes 4 us and 0.1 us per peer, and reads 200 GB/s; two shots take 8 us and 0.5 us per peer, at 300 GB/s.
  std::string text = "hw,kernel,ngpus,bytes,time_us\n";
  for (const int ranks : {2, 4, 8}) {
    for (std::int64_t bytes = 1 << 10; bytes <= std::int64_t{8} << 20; bytes *= 2) {
      const double peers = ranks - 1.0;
      const double read = static_cast<double>(bytes) * peers;
      const double one_shot = 4.0 + 0.1 * peers + read / 200e3;
      const double two_shot = 8.0 + 0.5 * peers + 2.0 * read / ranks / 300e3;
      text +=
          fmt::format("box,TRTLLM,{},{},{:.6f}\n", ranks, bytes, ranks == 2 ? one_shot : std::min(one_shot, two_shot));
    }
  }
  const Outcome outcome = run_program(command(write("sums.csv", text)));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.rfind("all-reduce of trtllm, from sums.csv\n    fitted ", 0), 0U) << outcome.out;
  EXPECT_NE(outcome.out.find("held out "), std::string::npos) << outcome.out;
  std::ifstream in(out());
  const std::string yaml(std::istreambuf_iterator<char>(in), {});
  for (const char* line : {"one_shot_latency: {value: 4 us, error: 0.00", "one_shot_rate: {value: 200 GB/s, error: 0.0",
                           "two_shot_rate: {value: 300 GB/s, error: 0.0", "provenance: \"fitted: sums.csv\"}"}) {
    EXPECT_NE(yaml.find(line), std::string::npos) << line << "\n" << yaml;
  }
  const Outcome run = run_program(
      "commfuse-sim run --model llama-3.1-8b --ranks 8 --seq 4K --all-reduce-kernel trtllm --hardware " + out());
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST_F(CalibrateCommand, TooFewRowsOfAFrameworkAreRefused) {
  const Outcome outcome = run_program(
      command(write("few.csv", "hw,kernel,ngpus,bytes,time_us\nbox,TRTLLM,8,1024,5\nbox,TRTLLM,8,2048,5\n")));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "nothing can be fitted: all-reduce of trtllm (few.csv): 2 rows, but a fit needs 12; measure more sizes\n");
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(CalibrateCommand, FaultyRowsAreNamedAndTheRestIsFitted) {
  const Outcome outcome = run_program(command(exchanges("box,send_recv,2,2,4096,-3\n")));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.err,
            (folder_ / "p2p.csv").string() + ":23: median_us is -3; a measurement must be a finite number above 0\n");
  EXPECT_TRUE(fs::exists(out()));
}

TEST_F(CalibrateCommand, SuggestsAnotherBaseForTooFastCollectives) {
  std::string text = "device,op,ngpus,devices_per_node,bytes,median_us\n";
  for (const char* op : {"all_gather", "reduce_scatter", "all_reduce"}) {
    for (std::int64_t bytes = 1 << 12; bytes <= std::int64_t{1} << 30;
         bytes *= 2) {  // The rows need 300 GB/s, but the links have 63 GB/s.
      text += fmt::format("box,{},8,8,{},{}\n", op, bytes, 20.0 + static_cast<double>(bytes) * 7.0 / 8.0 / 300e3);
    }
  }
  const Outcome outcome =
      run_program("commfuse-sim calibrate --base h100-pcie --name box --out " + out() + " " + write("c.csv", text));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(
      outcome.err.rfind("the measurements cannot be of h100-pcie: 27 of 57 messages are faster than its links; ", 0),
      0U)
      << outcome.err;
  EXPECT_NE(outcome.err.find("all_gather of 4194304 bytes on 8 GPUs ran at 113.9 GB/s, above 1.25 times the 63 GB/s "
                             "of the links of h100-pcie; check its time, or name another --base"),
            std::string::npos)
      << outcome.err;
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(CalibrateCommand, AFileIsNotCountedTwice) {
  const std::string file = exchanges();
  const Outcome outcome = run_program(command(file + " " + file));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, file + ": is given twice; remove one\n");
  EXPECT_FALSE(fs::exists(out()));
  EXPECT_EQ(run_program("commfuse-sim score --data " + file + " --data " + (folder_ / ".").string() + "/p2p.csv").code,
            2);
  const Outcome check = run_program("commfuse-sim schedule check push-ring push-ring");
  EXPECT_EQ(check.code, 2);
  EXPECT_EQ(check.err, "push-ring: is given twice; remove one\n");
}

TEST_F(CalibrateCommand, DoesNotOverwriteAFile) {
  write("box.yaml", "mine");
  const Outcome outcome = run_program(command(exchanges()));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, out() + " already exists; choose another --out, or remove this file\n");
}

TEST_F(CalibrateCommand, ATooLongNameIsAMistake) {
  const Outcome outcome = run_program("commfuse-sim calibrate --base h100-sxm --name box --out " +
                                      std::string(300, 'a') + " " + exchanges());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find(" cannot be written: File name too long; choose a shorter name"), std::string::npos)
      << outcome.err;
}

TEST_F(CalibrateCommand, BadInputWritesNothing) {
  const Outcome outcome = run_program(command(write("notes.txt", "nothing measured\n")));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_FALSE(outcome.err.empty());
  EXPECT_FALSE(fs::exists(out()));
}

// The logs below are the output of the how-to's commands, in the form that their launchers print.

/// Returns the output of one program of nccl-tests from 1 KiB to `largest`; each size takes `latency` us plus its bytes
/// at `rate` GB/s.
std::string log_of(std::string_view program, int ranks, int gpus_per_node, double latency, double rate,
                   std::int64_t largest = std::int64_t{1} << 30, std::string_view line_prefix = "") {
  std::string text =
      fmt::format("{}# Collective test starting: {}_perf\n{}# Using devices\n", line_prefix, program, line_prefix);
  for (int rank = 0; rank < ranks; ++rank) {
    text += fmt::format("{}#  Rank {:2} Group  0 Pid {} on node{:03} device {} [0x0a] NVIDIA H100\n", line_prefix, rank,
                        1000 + rank, rank / gpus_per_node, rank % gpus_per_node);
  }
  for (std::int64_t bytes = 1 << 10; bytes <= largest; bytes *= 2) {
    const double time = latency + static_cast<double>(bytes) / (1e3 * rate);
    text += fmt::format("{}{} {} float none -1 {:.3f} 1.0 1.0 0 {:.3f} 1.0 1.0 0\n", line_prefix, bytes, bytes / 4,
                        time, time);
  }
  return text;
}

TEST_F(CalibrateCommand, OneRunOfEachCollectiveIsEnough) {
  const std::string gather = write("ag.txt", log_of("all_gather", 8, 8, 25.0, 380.0));
  const std::string exchange = write("sr.txt", log_of("sendrecv", 8, 8, 15.0, 330.0));
  const Outcome outcome = run_program(command(gather + " " + exchange));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("collectives, from ag.txt"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("few rows, so the base is the prior; changed: "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("exchanges, from sr.txt"), std::string::npos) << outcome.out;
  EXPECT_EQ(run_program("commfuse-sim run --ranks 8 --hardware " + out()).code, 0);
}

TEST_F(CalibrateCommand, AClusterIsCalibratedFromTheLogsOfALauncher) {
  std::string files;
  for (const char* const program : {"all_gather", "reduce_scatter", "all_reduce"}) {
    files += " " + write(fmt::format("one-{}.txt", program), log_of(program, 8, 8, 30.0, 340.0));
    files += " " + write(fmt::format("two-{}.txt", program),
                         log_of(program, 16, 8, 60.0, 180.0, std::int64_t{1} << 32, " 0: "));
  }
  files += " " + write("sendrecv.txt", log_of("sendrecv", 2, 1, 14.0, 40.0));
  const Outcome outcome = run_program("commfuse-sim calibrate --base dgx-h100-x2 --name box --out " + out() + files);
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_NE(outcome.out.find("\ncollectives over nodes, from two-all_gather.txt, two-reduce_scatter.txt,\n"
                             "  two-all_reduce.txt\n"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("exchanges between nodes, from sendrecv.txt"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("wrote " + (folder_ / "box-node.yaml").string()), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("wrote " + out()), std::string::npos) << outcome.out;
  const Outcome run = run_program(
      "commfuse-sim run --model llama-3.1-70b --scope step --ranks 8 --data-parallel 2 "
      "--batch 2 --hardware " +
      out());
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST_F(CalibrateCommand, AClusterIsNotWrittenOverItsNodes) {
  std::string files;
  for (const char* const program : {"all_gather", "reduce_scatter", "all_reduce"}) {
    files += " " + write(fmt::format("one-{}.txt", program), log_of(program, 8, 8, 30.0, 340.0));
    files += " " + write(fmt::format("two-{}.txt", program), log_of(program, 16, 8, 60.0, 180.0));
  }
  const std::string nodes = (folder_ / "box-node.yaml").string();
  const Outcome outcome = run_program("commfuse-sim calibrate --base dgx-h100-x2 --name box --out " + nodes + files);
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_EQ(outcome.err, "--out: " + nodes + " is the file of the cluster's nodes; choose another name\n");
  EXPECT_FALSE(fs::exists(nodes));
}

TEST_F(CalibrateCommand, AClusterThatExtendsAnotherCanBeTheBase) {
  const std::string file = write("four.txt", log_of("all_reduce", 32, 8, 60.0, 180.0));
  const Outcome outcome =
      run_program("commfuse-sim calibrate --base dgx-b200-x4 --name box --out " + out() + " " + file);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Outcome shown = run_program("commfuse-sim run --ranks 32 --hardware " + out());
  EXPECT_EQ(shown.code, 0) << shown.err;
}

TEST_F(CalibrateCommand, FittedTimesAreNearMeasuredTimes) {
  const std::string file = write("four.txt", log_of("all_reduce", 32, 8, 60.0, 180.0));
  const Outcome outcome =
      run_program("commfuse-sim calibrate --base dgx-h100-x4 --name box --out " + out() + " " + file);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::size_t error = outcome.out.find(" rows, error ");
  ASSERT_NE(error, std::string::npos) << outcome.out;
  EXPECT_LT(std::stod(outcome.out.substr(error + 13)), 10.0) << outcome.out;  // The median, in percent
  EXPECT_EQ(outcome.out.find("warning: "), std::string::npos) << outcome.out;
}

TEST_F(CalibrateCommand, DoesNotOverwriteACalibratedMachine) {
  const std::string file = write("four.txt", log_of("all_reduce", 32, 8, 60.0, 180.0));
  const std::string gather = write("one.txt", log_of("all_gather", 8, 8, 30.0, 340.0));
  const std::string line = "commfuse-sim calibrate --base dgx-h100-x4 --name box --out " + out() + " " + file;
  ASSERT_EQ(run_program(line + " " + gather).code, 0);
  const Outcome again = run_program(line);
  EXPECT_EQ(again.code, 2);
  EXPECT_NE(again.err.find("already exists"), std::string::npos) << again.err;
}

TEST_F(CalibrateCommand, LogsOfTwoNodesNeedACluster) {
  const Outcome outcome = run_program(command(write("two.txt", log_of("all_reduce", 16, 8, 60.0, 180.0))));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("all_reduce on 2 nodes, but the base is a single node (name a cluster as --base, such as "
                             "dgx-h100-x2)"),
            std::string::npos)
      << outcome.err;
}

TEST_F(CalibrateCommand, ARackIsOneDomainOfManyHosts) {
  const std::string file = write("rack.txt", log_of("all_reduce", 72, 4, 40.0, 500.0));
  const Outcome outcome = run_program("commfuse-sim calibrate --base gb200 --name box --out " + out() + " " + file);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("collectives, from rack.txt"), std::string::npos) << outcome.out;
}

TEST_F(CalibrateCommand, AGroupAcrossTwoNodesIsNotALinkInsideOne) {
  std::string events;
  for (int i = 0; i < 12; ++i) {
    events += fmt::format(R"({}{{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllGather","pid":0,"tid":20,"ts":{},
      "dur":{},"args":{{"External id":{},"Collective name":"_allgather_base","In msg nelems":{},"Out msg nelems":{},
      "Group size":2,"dtype":"BFloat16","Process Group Ranks":"[0, 8]"}}}})",
                          i == 0 ? "" : ",", 100 * i, 20 + i, i, 1024 << i, 2048 << i);
  }
  const std::string trace = write("trace.json", R"({"schemaVersion":1,"traceEvents":[)" + events + "]}");
  const Outcome outcome = run_program(command(trace));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("all_gather on 2 nodes, but the base is a single node"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace commfuse::test
