// SPDX-License-Identifier: Apache-2.0
// The files are made up, with the keys that nvbandwidth's json_output.cpp writes.
#include "model/formats/nvbandwidth.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/refusal.h"

namespace commfuse {
namespace {

std::string document(const std::string& tests, const std::string& more = "") {
  return "{\"nvbandwidth\": {\"version\": \"v0.8\", \"git_version\": \"v0.8\", \"CUDA Runtime Version\": 12080, "
         "\"Driver Version\": \"570.86.15\"" +
         more + ", \"testcases\": [" + tests + "]}}\n";
}

std::string test(const std::string& name, const std::string& description, const std::string& matrix,
                 const std::string& more = "") {
  return fmt::format(R"({{"name": "{}", "status": "Passed", "bandwidth_description": "{}", "bandwidth_matrix": {}{}}})",
                     name, description, matrix, more);
}

const std::string write_test =
    test("device_to_device_memcpy_write_ce", "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)",
         R"([["N/A", "394.25"], ["393.5", "N/A"]])", R"(, "sum": 787.75)");

BandwidthRun read_bandwidths(const std::string& text) { return read_nvbandwidth(text, "bw.json"); }

std::string bandwidth_refusal(const std::string& text) {
  return test::refusal_of([&] { read_bandwidths(text); });
}

TEST(Nvbandwidth, AMatrixBetweenGpusIsRead) {
  const BandwidthRun run = read_bandwidths(document(
      write_test,
      R"json(, "GPU Device list": ["0: NVIDIA H100 80GB HBM3 (00000000:07:00): (node-1)", "1: NVIDIA H100"])json"));
  EXPECT_EQ(run.version, "v0.8");
  EXPECT_EQ(run.driver, "570.86.15");
  ASSERT_EQ(run.devices.size(), 2U);
  EXPECT_EQ(run.devices[0].name, "NVIDIA H100 80GB HBM3 (00000000:07:00)");
  EXPECT_EQ(run.devices[0].host, "node-1");
  EXPECT_EQ(run.devices[1].name, "NVIDIA H100");
  EXPECT_EQ(run.devices[1].host, "");
  ASSERT_EQ(run.matrices.size(), 1U);
  const BandwidthMatrix& matrix = run.matrices[0];
  EXPECT_EQ(matrix.test, "device_to_device_memcpy_write_ce");
  EXPECT_EQ(matrix.status, BandwidthStatus::passed);
  EXPECT_FALSE(matrix.is_latency);
  EXPECT_EQ(matrix.row, "GPU");
  EXPECT_EQ(matrix.column, "GPU");
  EXPECT_EQ(matrix.arrow, "<-");
  EXPECT_EQ(matrix.part, "");
  EXPECT_EQ(matrix.values,
            (std::vector<std::vector<std::optional<double>>>{{std::nullopt, 394.25}, {393.5, std::nullopt}}));
  EXPECT_EQ(run.notes, std::vector<std::string>{});
}

TEST(Nvbandwidth, OneRowOfTheHostAndALatencyAreRead) {
  const BandwidthRun run = read_bandwidths(document(
      test("host_to_device_memcpy_ce", "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)", R"([["55.6", "55.4"]])",
           R"(, "sum": 111.0, "min": 55.4, "max": 55.6, "average": 55.5)") +
      "," +
      test("host_device_latency_sm", "memory latency SM CPU(row) <-> GPU(column) (ns)", R"([["812.5", "813"]])")));
  ASSERT_EQ(run.matrices.size(), 2U);
  EXPECT_EQ(run.matrices[0].row, "CPU");
  EXPECT_EQ(run.matrices[0].values.at(0).at(1), 55.4);
  EXPECT_TRUE(run.matrices[1].is_latency);
  EXPECT_EQ(run.matrices[1].arrow, "<->");
  EXPECT_EQ(run.matrices[1].values.at(0).at(0), 812.5);
}

TEST(Nvbandwidth, ThreeMatricesBelowEachOtherArePartsOfOneTest) {
  const BandwidthRun run = read_bandwidths(document(test("device_to_device_bidirectional_memcpy_read_ce",
                                                         "memcpy CE CPU(row) <-> GPU(column) Total bandwidth (GB/s)",
                                                         R"([["N/A", "1"], ["2", "N/A"], ["N/A", "3"], ["4", "N/A"],
                                                  ["N/A", "4"], ["6", "N/A"]])",
                                                         R"(, "sum": 10)")));
  ASSERT_EQ(run.matrices.size(), 3U);
  EXPECT_EQ(run.matrices[0].part, "first");
  EXPECT_EQ(run.matrices[0].values.at(1).at(0), 2.0);
  EXPECT_EQ(run.matrices[1].part, "second");
  EXPECT_EQ(run.matrices[1].values.at(0).at(1), 3.0);
  EXPECT_EQ(run.matrices[2].part, "total");
  EXPECT_EQ(run.matrices[2].values.at(1).at(0), 6.0);
}

TEST(Nvbandwidth, FailedTestsStateTheirReason) {
  const BandwidthRun run = read_bandwidths(document(
      R"({"name": "a", "status": "Waived"}, {"name": "b", "status": "Running"}, {"name": "b", "status": "Error"},
         {"name": "c", "status": "Error", "error": "CUDA_ERROR_OUT_OF_MEMORY line 7"}, {"name": "d", "status": "Running"})"));
  ASSERT_EQ(run.matrices.size(), 4U);
  EXPECT_EQ(run.matrices[0].status, BandwidthStatus::waived);
  EXPECT_EQ(run.matrices[0].error, "");
  EXPECT_EQ(run.matrices[1].test, "b");
  EXPECT_EQ(run.matrices[1].error, "status 'Error'");
  EXPECT_EQ(run.matrices[2].error, "CUDA_ERROR_OUT_OF_MEMORY line 7");
  EXPECT_EQ(run.matrices[3].error, "status 'Running'");
  EXPECT_EQ(run.matrices[3].status, BandwidthStatus::failed);
}

TEST(Nvbandwidth, ARunThatFailedAsAWholeHasItsError) {
  const BandwidthRun run = read_bandwidths(
      R"({"nvbandwidth": {"version": "v0.8", "error": "[CUDA_ERROR_NO_DEVICE] no CUDA-capable device"}})");
  EXPECT_EQ(run.error, "[CUDA_ERROR_NO_DEVICE] no CUDA-capable device");
  EXPECT_TRUE(run.matrices.empty());
}

TEST(Nvbandwidth, UnusedPartsAreNoted) {
  const BandwidthRun run =
      read_bandwidths("srun: job 7 started\n" +
                      document(test("host_to_device_memcpy_ce", "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)",
                                    R"([["55.6"]])", R"(, "stdev": 1)"),
                               R"(, "warning": "NOTE: small buffer", "bufferSize": 64)"));
  EXPECT_EQ(run.notes, (std::vector<std::string>{
                           "bw.json: text before the JSON is not used: 'srun: job 7 started\\x0a'",
                           "bw.json: nvbandwidth: key 'bufferSize' is not used",
                           "bw.json: nvbandwidth reports: 'NOTE: small buffer'",
                           "bw.json: nvbandwidth.testcases[0]: key 'stdev' is not used",
                       }));
}

TEST(Nvbandwidth, MistakesAreRefusedWithTheirPlace) {
  const std::string bandwidth = "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)";
  const auto matrix_refusal = [&](const std::string& matrix, const std::string& more = "") {
    return bandwidth_refusal(document(test("a", bandwidth, matrix, more)));
  };
  const std::string place = "bw.json: nvbandwidth.testcases[0]";
  EXPECT_EQ(bandwidth_refusal("nccl"), "bw.json: contains no JSON; give what nvbandwidth -j printed");
  EXPECT_EQ(bandwidth_refusal("{}"), "bw.json: has no key nvbandwidth; give what nvbandwidth -j printed");
  EXPECT_EQ(bandwidth_refusal("{\"nvbandwidth\": {}}\n{}"),
            "bw.json:2:1: is not one JSON document; give the complete output of nvbandwidth -j, one run per file");
  EXPECT_EQ(bandwidth_refusal("{\"nvbandwidth\": {\"error\": \"a\", \"error\": \"b\"}}"),
            "bw.json: an object has the key 'error' twice; give the whole file as it was printed");
  EXPECT_EQ(bandwidth_refusal("{\"nvbandwidth\": {}}"),
            "bw.json: nvbandwidth: has no test and no error; give the whole file as it was printed");
  EXPECT_EQ(bandwidth_refusal("{\"nvbandwidth\": 3}"),
            "bw.json: nvbandwidth: is not an object; give the whole file as it was printed");
  EXPECT_EQ(matrix_refusal(R"([["1", "2"], ["3"]])"),
            place + ".bandwidth_matrix[1]: has 1 columns, but the first row has 2; give the whole file");
  EXPECT_EQ(matrix_refusal("[]"), place + ".bandwidth_matrix: has 0 rows; give the whole file");
  EXPECT_EQ(matrix_refusal(R"([["1", "2"], ["3", "4"], ["5", "6"]])"),
            place + ": the matrix has 3 rows and 2 columns; give the whole file");
  EXPECT_EQ(matrix_refusal(R"([["-1"]])"),
            place + ".bandwidth_matrix[0][0]: '-1' is not a rate or time; run nvbandwidth again");
  EXPECT_EQ(matrix_refusal(R"([["nan"]])"),
            place + ".bandwidth_matrix[0][0]: 'nan' is not a rate or time; run nvbandwidth again");
  EXPECT_EQ(matrix_refusal(R"([["1"]])", R"(, "sum": 2)"),
            place + ".sum: is 2, but the values add up to 1; give the whole file");
  EXPECT_EQ(bandwidth_refusal(document(test("a", "memcpy (MB/s)", R"([["1"]])"))),
            place + ".bandwidth_description: 'memcpy (MB/s)' names neither GB/s nor ns; convert the values");
  EXPECT_EQ(bandwidth_refusal(document(R"({"name": "a", "status": "Fine"})")),
            place + ".status: unknown status 'Fine'; known: Passed, Waived, Error, Running, Not Found");
  EXPECT_EQ(bandwidth_refusal(document(R"({"name": "a"})")),
            place + ": has no status; give the whole file as it was printed");
  EXPECT_EQ(bandwidth_refusal(document(R"({"name": "a", "status": "Passed"})")),
            place + ": passed without a matrix or its description; give the whole file as it was printed");
  EXPECT_EQ(bandwidth_refusal(document(write_test, R"(, "GPU Device list": ["1: NVIDIA H100"])")),
            "bw.json: nvbandwidth.GPU Device list[0]: '1: NVIDIA H100' is not device 0; give the whole file as it was "
            "printed");
}

}  // namespace
}  // namespace commfuse
