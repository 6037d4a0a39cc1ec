// SPDX-License-Identifier: Apache-2.0
// Tests matrices of copies: the timed copies, their names, and the verdict.
#include "validate/bench/copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "validate/bench/links.h"
#include "validate/bench/rates.h"
#include "validate/executor.h"

namespace commfuse::validate {
namespace {

using namespace std::chrono_literals;

/// Every copy takes 1 us per KiB, and twice as long into GPU 1. Unless `all_reach` is true, GPUs reach only the other
/// GPU of their pair.
class PairsCopier final : public Copier {
 public:
  explicit PairsCopier(int gpus, bool all_reach = true) : gpus_(gpus), all_reach_(all_reach) {}

  [[nodiscard]] int gpus() const override { return gpus_; }
  [[nodiscard]] bool reaches(int gpu, int other) const override { return all_reach_ || gpu / 2 == other / 2; }
  void make_room(Bytes bytes) override { reserved = bytes; }
  void check(std::span<const TimedCopy> copies) override {
    ++checks;
    if (checks == stuck_at) {
      throw Stuck("copies have not ended within 60 s");
    }
    if (copies.front().from == corrupt_source) {
      throw std::runtime_error("a byte did not arrive");
    }
  }
  [[nodiscard]] std::vector<Duration> time(std::span<const TimedCopy> copies) override {
    ++timed;
    std::vector<Duration> times;
    for (const TimedCopy& copy : copies) {
      times.push_back((copy.to == 1 ? 2 : 1) * copy.bytes.count / 1024 * Duration(1us));
    }
    return times;
  }

  Bytes reserved{};
  int corrupt_source = -2;  // GPU from which no byte arrives
  int checks = 0;
  int stuck_at = 0;
  int timed = 0;

 private:
  int gpus_;
  bool all_reach_;
};

std::vector<std::string> names_of(const std::vector<CopyProgram>& programs) {
  std::vector<std::string> names;
  for (const CopyProgram& program : programs) {
    if (names.empty() || names.back() != program.what.front().op) {
      names.push_back(program.what.front().op);
    }
  }
  return names;
}

TEST(Copies, HaveTheNamesOfNvbandwidth) {
  const PairsCopier copier(2);
  EXPECT_EQ(names_of(copy_programs({.gpus = 2, .sizes = {{512}}, .both_ways = true}, copier)),
            (std::vector<std::string>{
                "host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_to_device_memcpy_read_ce",
                "device_to_device_memcpy_write_ce", "host_to_device_memcpy_sm", "device_to_host_memcpy_sm",
                "device_to_device_memcpy_read_sm", "device_to_device_memcpy_write_sm",
                "host_to_device_bidirectional_memcpy_ce", "device_to_host_bidirectional_memcpy_ce",
                "device_to_device_bidirectional_memcpy_read_ce", "device_to_device_bidirectional_memcpy_write_ce",
                "host_to_device_bidirectional_memcpy_sm", "device_to_host_bidirectional_memcpy_sm",
                "device_to_device_bidirectional_memcpy_read_sm", "device_to_device_bidirectional_memcpy_write_sm"}));
  EXPECT_FALSE(copy_test_named("device_to_device_memcpy_ce"));
  EXPECT_FALSE(copy_test_named("transfer"));
  ASSERT_TRUE(copy_test_named("device_to_device_bidirectional_memcpy_read_sm"));
  EXPECT_TRUE(copy_test_named("device_to_device_bidirectional_memcpy_read_sm")->reads);
}

TEST(Copies, TheGpuOfTheRowIssuesTheCopyAndReadsOrWrites) {
  const PairsCopier copier(2);
  for (const CopyProgram& program : copy_programs({.gpus = 2, .sizes = {{512}}, .both_ways = true}, copier)) {
    ASSERT_EQ(program.copies.size(), program.what.size());
    for (std::size_t i = 0; i < program.copies.size(); ++i) {
      const TimedCopy& copy = program.copies[i];
      const MicroBenchmark& benchmark = program.what[i];
      EXPECT_EQ(copy.issuer, benchmark.rank);
      if (const std::optional<CopyTest> test = copy_test_named(benchmark.op); test && !test->with_host) {
        EXPECT_EQ(copy.from, test->reads ? benchmark.peer : benchmark.rank) << benchmark.op;
        EXPECT_EQ(copy.to, test->reads ? benchmark.rank : benchmark.peer) << benchmark.op;
      }
    }
  }
}

// nvbandwidth also makes the disturbing copy longer, so that the timed copy never runs alone.
TEST(Copies, ACopyThatDisturbsAHostCopyIsTwiceAsLong) {
  const PairsCopier copier(1);
  const auto programs = copy_programs({.gpus = 1, .sizes = {{512}}, .by_kernels = false, .both_ways = true}, copier);
  ASSERT_EQ(programs.size(), 4U);
  const std::vector<TimedCopy>& both = programs[2].copies;
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].from, host_end);
  EXPECT_EQ(both[1].to, host_end);
  EXPECT_EQ(both[1].repetitions, 2 * both[0].repetitions);
  EXPECT_TRUE(programs[2].what[1].op.empty());
}

TEST(Copies, OmitPairsThatCannotReachEachOther) {
  const PairsCopier copier(4, false);
  const auto programs = copy_programs({.gpus = 4, .sizes = {{512}}, .by_kernels = false}, copier);
  EXPECT_EQ(programs.size(), 2U * 4U + 2U * 4U);
}

TEST(Copies, AreCheckedAndTimedAsOftenAsRequested) {
  PairsCopier copier(2);
  copier.corrupt_source = 1;
  const auto programs = copy_programs({.gpus = 2, .sizes = {{512}, {2048}}, .by_kernels = false}, copier);
  ASSERT_EQ(programs.size(), 2U * 8U);
  const BenchResult result = time_copies(programs, {.passes = 2, .repetitions = 3}, copier);
  EXPECT_EQ(copier.reserved.count, 2048);
  const auto corrupt = static_cast<std::size_t>(
      std::ranges::count_if(programs, [](const CopyProgram& program) { return program.copies.front().from == 1; }));
  EXPECT_EQ(result.failures.size(), corrupt);
  EXPECT_NE(std::ranges::find(result.failures,
                              "device_to_host_memcpy_ce of 512 bytes, GPU 1: not measured: a byte did not arrive"),
            result.failures.end());
  ASSERT_EQ(result.measured.size(), programs.size() - corrupt);
  // In each pass, a program first runs once without being counted.
  EXPECT_EQ(copier.timed, static_cast<int>(2 * 4 * result.measured.size()));
  for (const MicroBenchmark& benchmark : result.measured) {
    EXPECT_EQ(benchmark.samples.size(), 6U);
  }
}

TEST(Copies, StopAfterAHangAndKeepTheirSamples) {
  PairsCopier copier(2);
  copier.stuck_at = 6;
  const auto programs = copy_programs({.gpus = 2, .sizes = {{512}}, .by_kernels = false}, copier);
  ASSERT_EQ(programs.size(), 8U);
  const BenchResult result = time_copies(programs, {.passes = 3, .repetitions = 2}, copier);
  EXPECT_EQ(copier.checks, 6);
  ASSERT_EQ(result.failures.size(), 1U);
  EXPECT_TRUE(result.failures[0].starts_with("stopped after 5 of 24 measurements, at ")) << result.failures[0];
  EXPECT_TRUE(result.failures[0].ends_with(": copies have not ended within 60 s")) << result.failures[0];
  EXPECT_EQ(result.measured.size(), 5U);
}

TEST(Copies, AreComparedAndPrintedAsMatrices) {
  PairsCopier copier(3);
  const auto programs =
      copy_programs({.gpus = 3, .sizes = {{512 << 10}}, .by_kernels = false, .both_ways = true}, copier);
  const BenchResult result = time_copies(programs, {.passes = 1, .repetitions = 7}, copier);
  const LinkFindings findings = findings_in(result.measured, {}, 0.2);
  const std::string text = to_table(findings, 3, 0.2);
  EXPECT_NE(text.find("host_to_device_memcpy_ce of 512 KiB by GPU, GB/s\n   0    1.02     0.51!    1.02\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("device_to_device_memcpy_write_ce of 512 KiB, GB/s, GPU (down) -> GPU (right)\n"
                      "         0      1      2\n"
                      "   0     -   0.51!  1.02\n"
                      "   1  1.02      -   1.02\n"
                      "   2  1.02   0.51!     -\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("device_to_device_memcpy_read_ce of 512 KiB, GB/s, GPU (down) <- GPU (right)\n"
                      "         0      1      2\n"
                      "   0     -   1.02   1.02\n"
                      "   1  0.51!     -   0.51!\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  GPU 1: 2 of 2 incoming links take 2.00 times as long as usual\n"
                      "    (device_to_device_memcpy_write_ce of 512 KiB)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  GPU 1: 2 of 2 incoming links take 2.00 times as long as usual\n"
                      "    (device_to_device_memcpy_read_ce of 512 KiB)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(
      rates_in_words(result.measured)
          .find("device_to_device_bidirectional_memcpy_write_ce, 524288 bytes each, GB/s in both directions together\n"
                "           0       1       2\n"
                "   0       -    1.54    2.05\n"),
      std::string::npos)
      << rates_in_words(result.measured);
}

}  // namespace
}  // namespace commfuse::validate
