// SPDX-License-Identifier: Apache-2.0
#include "validate/verdict/tool_results.h"

#include <gtest/gtest.h>

namespace commfuse::validate {
namespace {

BandwidthMatrix matrix_of(const std::string& test, std::vector<std::vector<std::optional<double>>> values) {
  return {.test = test, .description = "", .values = std::move(values)};
}

TEST(ToolResults, CopiesOfOneDirectionAreKept) {
  const BandwidthRun run{.devices = {{.name = "H100", .host = "node-1"}, {.name = "H100", .host = "node-1"}},
                         .matrices = {matrix_of("device_to_device_memcpy_read_sm", {{std::nullopt, 390.0}, {0.0, 1.0}}),
                                      matrix_of("host_to_device_memcpy_ce", {{55.0, 56.0}}),
                                      matrix_of("host_to_device_memcpy_sm", {{35.0, 35.0}})}};
  const ToolResults results = results_of(run);
  EXPECT_EQ(results.hosts, std::vector<std::string>{"node-1"});
  ASSERT_EQ(results.copies.size(), 2U);
  EXPECT_TRUE(results.copies[0].by_sms);
  ASSERT_EQ(results.copies[0].copies.size(), 1U);  // neither the diagonal nor a rate of 0 is kept
  EXPECT_EQ(results.copies[0].copies[0].from, 0);
  EXPECT_EQ(results.copies[0].copies[0].to, 1);
  EXPECT_DOUBLE_EQ(results.copies[0].copies[0].rate.value, 390e9);
  ASSERT_EQ(results.copies[1].copies.size(), 2U);
  EXPECT_EQ(results.copies[1].copies[1].from, host_side);
  EXPECT_EQ(results.copies[1].copies[1].to, 1);
  EXPECT_EQ(results.passed_over,
            std::vector<std::string>{"host_to_device_memcpy_sm: the model has no rate for this test"});
  EXPECT_TRUE(results.findings.empty());
}

TEST(ToolResults, FailedCopiesAreFindingsAndWaivedOnesAreNot) {
  BandwidthMatrix failed = matrix_of("device_to_device_memcpy_read_ce", {});
  failed.status = BandwidthStatus::failed;
  failed.error = "CUDA_ERROR_ECC\nline";
  BandwidthMatrix waived = matrix_of("device_to_device_memcpy_write_ce", {});
  waived.status = BandwidthStatus::waived;
  const ToolResults results = results_of(BandwidthRun{.matrices = {failed, waived}, .error = "no device"});
  ASSERT_EQ(results.findings.size(), 2U);
  EXPECT_EQ(results.findings[0].test, "run");
  EXPECT_EQ(results.findings[0].text, "no device");
  EXPECT_EQ(results.findings[1].test, "device_to_device_memcpy_read_ce");
  EXPECT_EQ(results.findings[1].text, "CUDA_ERROR_ECC\\x0aline");
  EXPECT_EQ(results.findings[1].severity, Severity::critical);
  EXPECT_TRUE(results.findings[1].is_bad);
  EXPECT_EQ(results.passed_over.size(), 1U);
}

TEST(ToolResults, MatricesOfSeveralNodesAreNotJudged) {
  const BandwidthRun run{
      .devices = {{.name = "", .host = "a"}, {.name = "", .host = "b"}},
      .matrices = {matrix_of("device_to_device_memcpy_read_ce", {{std::nullopt, 1.0}, {1.0, std::nullopt}})}};
  EXPECT_TRUE(results_of(run).copies.empty());
  EXPECT_EQ(results_of(run).hosts.size(), 2U);
}

DcgmResult result_of(const std::string& test, std::optional<int> gpu, DcgmStatus status) {
  return {.category = "Hardware", .test = test, .entity = gpu ? "GPU" : "", .id = gpu, .status = status};
}

TEST(ToolResults, FailedTestsOfDcgmHaveACauseAndANextCommand) {
  DcgmResult memory = result_of("Memory", 3, DcgmStatus::fail);
  memory.warnings = {{.text = "wrong bits", .severity = DcgmSeverity::isolate}};
  DcgmResult power = result_of("Targeted Power", 1, DcgmStatus::warn);
  DcgmResult software = result_of("Denylist", std::nullopt, DcgmStatus::fail);
  software.category = "Deployment";
  const ToolResults results =
      results_of(DcgmDiagnostic{.results = {memory, result_of("Memory", std::nullopt, DcgmStatus::fail), power,
                                            software, result_of("pcie", 0, DcgmStatus::pass)}});
  ASSERT_EQ(results.findings.size(), 3U);  // the whole test has the finding of GPU 3
  EXPECT_EQ(results.findings[0].subject, "GPU 3");
  EXPECT_EQ(results.findings[0].cause, "GPU memory gives wrong values or cannot be allocated");
  EXPECT_EQ(results.findings[0].next, "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT");
  EXPECT_EQ(results.findings[0].text, "wrong bits");
  EXPECT_EQ(results.findings[0].severity, Severity::critical);
  EXPECT_TRUE(results.findings[0].is_bad);
  EXPECT_FALSE(results.findings[1].is_bad);
  EXPECT_EQ(results.findings[2].severity, Severity::minor);
  EXPECT_EQ(results.findings[2].next, "dcgmi diag -r 1 -v");
  EXPECT_TRUE(results.has_passed_tests);
}

TEST(ToolResults, ADiagnosticThatDidNotRunHasNoFindings) {
  const ToolResults results = results_of(DcgmDiagnostic{.error = "nv-hostengine is not running"});
  EXPECT_TRUE(results.findings.empty());
  EXPECT_EQ(results.passed_over, std::vector<std::string>{"dcgmi diag did not run: nv-hostengine is not running"});
  EXPECT_FALSE(results.has_passed_tests);
}

TEST(ToolResults, CopyRecordsAreReadLikeNvbandwidthMatrices) {
  constexpr std::int64_t large = std::int64_t{64} << 20U;
  using std::chrono::milliseconds;
  const auto copy = [](const std::string& op, std::int64_t bytes, std::int64_t rank, std::int64_t peer) {
    return MicroBenchmark{.op = op,
                          .bytes = bytes,
                          .ranks = 2,
                          .rank = rank,
                          .peer = peer,
                          .samples = {milliseconds(9), milliseconds(1), milliseconds(2)}};
  };
  RunRecord record;
  record.micro_benchmarks = {
      copy("device_to_device_memcpy_read_sm", large, 1, 0), copy("device_to_device_memcpy_read_sm", 8192, 1, 0),
      copy("device_to_host_memcpy_ce", large, 1, -1),
      copy("device_to_device_bidirectional_memcpy_read_sm", large, 1, 0), copy("transfer", large, 1, 0)};
  const ToolResults results = results_of(record);
  ASSERT_EQ(results.copies.size(), 2U);
  EXPECT_EQ(results.copies[0].test, "device_to_device_memcpy_read_sm");
  EXPECT_TRUE(results.copies[0].by_sms);
  ASSERT_EQ(results.copies[0].copies.size(), 1U);
  EXPECT_EQ(results.copies[0].copies[0].from, 1);
  EXPECT_EQ(results.copies[0].copies[0].to, 0);
  EXPECT_DOUBLE_EQ(results.copies[0].copies[0].rate.value, static_cast<double>(large) / 2e-3);
  ASSERT_EQ(results.copies[1].copies.size(), 1U);
  EXPECT_EQ(results.copies[1].copies[0].from, host_side);
  EXPECT_EQ(results.copies[1].copies[0].to, 1);

  record.micro_benchmarks = {copy("device_to_host_memcpy_ce", large / 2, 1, -1)};
  EXPECT_TRUE(results_of(record).copies.empty());
  EXPECT_EQ(results_of(record).passed_over.size(), 1U);
  record.micro_benchmarks = {copy("transfer", large, 1, 0)};
  EXPECT_TRUE(results_of(record).passed_over.empty());
}

}  // namespace
}  // namespace commfuse::validate
