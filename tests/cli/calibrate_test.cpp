// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

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
  /// A pair whose messages take 10 us and go at 100 GB/s.
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

TEST_F(CalibrateCommand, WritesAHardwareFileThatRunTakes) {
  const Outcome outcome = run_program(command(exchanges()));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("exchanges, from p2p.csv"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("held out"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("wrote " + out()), std::string::npos) << outcome.out;
  const Outcome run = run_program("commfuse-sim run --model llama-3.1-8b --ranks 8 --seq 4K --hardware " + out());
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST_F(CalibrateCommand, FaultyRowsAreNamedAndTheRestIsFitted) {
  const Outcome outcome = run_program(command(exchanges("box,send_recv,2,2,4096,-3\n")));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.err, (folder_ / "p2p.csv").string() + ":23: median_us is -3; a measurement is a number above 0\n");
  EXPECT_TRUE(fs::exists(out()));
}

TEST_F(CalibrateCommand, CollectivesThatTheBaseCannotHaveNameAnotherBase) {
  std::string text = "device,op,ngpus,devices_per_node,bytes,median_us\n";
  for (const char* op : {"all_gather", "reduce_scatter", "all_reduce"}) {
    for (std::int64_t bytes = 1 << 12; bytes <= std::int64_t{1} << 30; bytes *= 2) {  // 300 GB/s over links of 63
      text += fmt::format("box,{},8,8,{},{}\n", op, bytes, 20.0 + static_cast<double>(bytes) * 7.0 / 8.0 / 300e3);
    }
  }
  const Outcome outcome =
      run_program("commfuse-sim calibrate --base h100-pcie --name box --out " + out() + " " + write("c.csv", text));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err.rfind("nothing can be fitted: collectives (c.csv): 26 rows, where a fit needs 40", 0), 0U)
      << outcome.err;
  EXPECT_NE(outcome.err.find("all_gather of 4194304 bytes on 8 GPUs ran at 113.9 GB/s, above 1.25 times the links of "
                             "h100-pcie, 63 GB/s; check its time, or name another --base"),
            std::string::npos)
      << outcome.err;
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(CalibrateCommand, AFileIsNotCountedTwice) {
  const std::string file = exchanges();
  const Outcome outcome = run_program(command(file + " " + file));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, file + ": is given twice; leave one out\n");
  EXPECT_FALSE(fs::exists(out()));
  EXPECT_EQ(run_program("commfuse-sim score --data " + file + " --data " + (folder_ / ".").string() + "/p2p.csv").code,
            2);
  const Outcome check = run_program("commfuse-sim schedule check push-ring push-ring");
  EXPECT_EQ(check.code, 2);
  EXPECT_EQ(check.err, "push-ring: is given twice; leave one out\n");
}

TEST_F(CalibrateCommand, WhatIsThereIsNotOverwritten) {
  write("box.yaml", "mine");
  const Outcome outcome = run_program(command(exchanges()));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, out() + " is there already; choose another --out, or remove it\n");
}

TEST_F(CalibrateCommand, BadInputWritesNothing) {
  const Outcome outcome = run_program(command(write("notes.txt", "nothing measured\n")));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_FALSE(outcome.err.empty());
  EXPECT_FALSE(fs::exists(out()));
}

}  // namespace
}  // namespace commfuse::test
