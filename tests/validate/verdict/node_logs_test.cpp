// SPDX-License-Identifier: Apache-2.0
#include "validate/verdict/node_logs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "model/config/catalogue.h"
#include "model/record/run_record.h"
#include "tests/own_folder.h"

namespace commfuse::validate {
namespace {

/// Returns the output of nccl-tests for two ranks on some hosts.
std::string log_of(const std::string& program, const std::vector<std::string>& hosts, const std::string& rows) {
  std::string text = fmt::format(
      "# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22903\n"
      "# Collective test starting: {}_perf\n# nThread 1 nGpus 1\n# Using devices\n",
      program);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    text += fmt::format("#  Rank {:2} Group  0 Pid   4242 on {} device {:2} [0x07] NVIDIA H100\n", i, hosts[i], i);
  }
  return text + rows;
}

const std::string two_rows =
    "  1048576   262144  float  sum  -1   25.0  41.9  73.4  0   24.0  43.7  76.5  0\n"
    "  2097152   524288  float  sum  -1   38.0  55.2  96.6  0   37.0  56.7  99.2  0\n";

class NodeLogsTest : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(name) << text;
    return name;
  }
  NodeLogs read(const std::vector<std::string>& files, NodeBy by = NodeBy::host) {
    return read_node_logs(files, by, machine);
  }
  Machine machine = load_machine("h100-sxm");

 private:
  OwnFolder folder_;
};

TEST_F(NodeLogsTest, CollectivesOfOneHostAreOneNode) {
  const NodeLogs logs = read({file("a.txt", log_of("all_reduce", {"node-1", "node-1"}, two_rows)),
                              file("b.txt", log_of("all_gather", {"node-1", "node-1"}, two_rows)),
                              file("c.txt", log_of("all_reduce", {"node-0", "node-0"}, two_rows))});
  ASSERT_EQ(logs.nodes.size(), 2U);
  EXPECT_EQ(logs.nodes[0].name, "node-0");
  EXPECT_EQ(logs.nodes[1].name, "node-1");
  ASSERT_EQ(logs.nodes[1].rows.size(), 4U);
  EXPECT_EQ(logs.nodes[1].rows[2].message.op, LinkOp::all_gather);
  EXPECT_EQ(logs.nodes[1].rows[2].message.gpus, 2);
  EXPECT_EQ(logs.nodes[1].rows[2].message.bytes.count, 1048576);
  EXPECT_DOUBLE_EQ(logs.nodes[1].rows[2].time_us, 25.0);  // out of place
  EXPECT_EQ(logs.nodes[1].nccl_versions, std::vector<std::string>{"2.29.3"});
  EXPECT_TRUE(logs.unread.empty());
  EXPECT_TRUE(logs.passed_over.empty());
}

// Format of ROCm's rccl-tests (develop, 2025): a version without "#", devices with and without a name.
TEST_F(NodeLogsTest, ReadsLogsOfRcclTests) {
  machine = load_machine("mi300x");
  std::string text =
      "# Collective test starting: all_reduce_perf\n"
      "# nThread 1 nGpus 8 minBytes 8388608 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 "
      "validation: 1 graph: 0\n#\nrccl-tests: Version develop:83d38d9\n# Using devices\n";
  for (int rank = 0; rank < 8; ++rank) {
    text += fmt::format("#  Rank {:2} Group  0 Pid  37300 on   g100n126 device {:2} [0000:{:02x}:00] {}\n", rank, rank,
                        5 + rank, rank == 7 ? "" : "AMD Instinct MI300X");
  }
  text +=
      "#\n#                                                              out-of-place                       in-place\n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
      "#wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
      "     8388608       2097152     float     sum      -1    91.10   92.08  161.14      0    94.94   88.36  154.63   "
      "   "
      "0\n# Errors with asterisks indicate errors that have exceeded the maximum threshold.\n"
      "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 157.885\n";
  const NodeLogs logs = read({file("a.txt", text)});
  ASSERT_EQ(logs.nodes.size(), 1U);
  EXPECT_EQ(logs.nodes[0].name, "g100n126");
  ASSERT_EQ(logs.nodes[0].rows.size(), 1U);
  EXPECT_EQ(logs.nodes[0].rows[0].message.op, LinkOp::all_reduce);
  EXPECT_EQ(logs.nodes[0].rows[0].message.gpus, 8);
  EXPECT_EQ(logs.nodes[0].rows[0].message.bytes.count, 8388608);
  EXPECT_DOUBLE_EQ(logs.nodes[0].rows[0].time_us, 91.10);
  EXPECT_TRUE(logs.passed_over.empty());
}

TEST_F(NodeLogsTest, FilesDistinguishNodesWhereHostsDoNot) {
  const std::vector<std::string> files{file("a.txt", log_of("all_reduce", {"pod", "pod"}, two_rows)),
                                       file("b.txt", log_of("all_reduce", {"pod", "pod"}, two_rows))};
  EXPECT_EQ(read(files).nodes.size(), 1U);
  const NodeLogs logs = read(files, NodeBy::file);
  ASSERT_EQ(logs.nodes.size(), 2U);
  EXPECT_EQ(logs.nodes[0].name, files[0]);
}

TEST_F(NodeLogsTest, HostsThatRanTogetherAreJudgedTogether) {
  machine = load_machine("dgx-h100-x2");
  const NodeLogs logs = read({file("a.txt", log_of("all_reduce", {"b", "a", "c"}, two_rows))});
  ASSERT_EQ(logs.nodes.size(), 1U);
  EXPECT_EQ(logs.nodes[0].name, "a+b+c");
  EXPECT_EQ(logs.nodes[0].rows.front().message.nodes, 3);
  EXPECT_EQ(machine.nodes, 3);
}

TEST_F(NodeLogsTest, ReportsFilesThatAreNotJudged) {
  const std::string broadcast_log = log_of("broadcast", {"n", "n"}, two_rows);
  const NodeLogs logs =
      read({file("a.txt", broadcast_log), file("b.txt", log_of("sendrecv", {"n", "n", "n"}, two_rows)),
            file("c.txt", log_of("all_reduce", {"x", "y"}, two_rows))});
  ASSERT_EQ(logs.passed_over.size(), 3U);
  EXPECT_NE(logs.passed_over[0].find("the model has no broadcast (2 rows)"), std::string::npos);
  EXPECT_NE(logs.passed_over[1].find("send_recv of 3 GPUs, which share wires; only pairs are judged (2 rows)"),
            std::string::npos);
  EXPECT_NE(logs.passed_over[2].find("2 GPUs on 2 nodes, which h100-sxm does not have (2 rows)"), std::string::npos);
}

TEST_F(NodeLogsTest, RowsWithWrongElementsAreReportedSeparately) {
  const std::string wrong = "  1048576   262144  float  sum  -1   25.0  41.9  73.4  7   24.0  43.7  76.5  0\n";
  const NodeLogs logs = read({file("a.txt", log_of("all_reduce", {"n", "n"}, wrong + two_rows))});
  ASSERT_EQ(logs.nodes.front().wrong_results.size(), 1U);
  EXPECT_NE(logs.nodes.front().wrong_results[0].find("a.txt: line 7: 7 elements were wrong"), std::string::npos);
  EXPECT_EQ(logs.nodes.front().rows.size(), 2U);
}

TEST_F(NodeLogsTest, NamesFilesThatAreNotLogsAndReadsTheRest) {
  const NodeLogs logs =
      read({file("a.txt", "hello\n"), "/nowhere/b.txt", file("c.txt", log_of("all_reduce", {"n", "n"}, two_rows))});
  EXPECT_EQ(logs.nodes.size(), 1U);
  ASSERT_EQ(logs.unread.size(), 2U);
  EXPECT_NE(logs.unread[0].find("a.txt: has no rows of nccl-tests; give the output of one of its programs"),
            std::string::npos);
  EXPECT_NE(logs.unread[1].find("/nowhere/b.txt: cannot be read"), std::string::npos);
}

TEST_F(NodeLogsTest, RecordsOfBenchHaveCollectivesToo) {
  RunRecord record{.executor = "mpi", .compute = "real", .links = "mpi"};
  record.environment.mpi = "Open MPI 4.1";  // only records with MPI have hosts
  record.environment.hosts = {"node-1", "node-1"};
  using std::chrono::microseconds;
  record.micro_benchmarks = {
      {.op = "all_gather",
       .bytes = 1 << 20,
       .ranks = 2,
       .samples = {microseconds(30), microseconds(10), microseconds(20)}},
      {.op = "all_gather", .beside = "product", .bytes = 1 << 20, .ranks = 2, .samples = {microseconds(99)}},
      {.op = "all_gather", .bytes = 1 << 20, .ranks = 2, .in_place = true, .samples = {microseconds(99)}},
      {.op = "transfer", .bytes = 1 << 20, .ranks = 2, .rank = 0, .peer = 1, .samples = {microseconds(99)}}};
  const NodeLogs logs = read({file("a.json", to_json(record))});
  ASSERT_TRUE(logs.unread.empty()) << logs.unread.front();
  ASSERT_EQ(logs.nodes.size(), 1U);
  EXPECT_EQ(logs.nodes[0].name, "node-1");
  ASSERT_EQ(logs.nodes[0].rows.size(), 1U);
  EXPECT_DOUBLE_EQ(logs.nodes[0].rows[0].time_us, 20.0);
  record.links = "emulated";
  EXPECT_EQ(read({file("b.json", to_json(record))}).unread.front(),
            "b.json: its links were emulated at predicted times; give measurements");
  record.links = "mpi";
  record.micro_benchmarks.clear();
  EXPECT_EQ(read({file("c.json", to_json(record))}).unread.front(),
            "c.json: has neither collectives nor copies; give a record of commfuse-validate bench or links --copies");
}

TEST_F(NodeLogsTest, RowsThatCannotBeReadAreCountedPerFile) {
  const std::string zero = "  1048576   262144  float  sum  -1   0.0  41.9  73.4  0   24.0  43.7  76.5  0\n";
  const NodeLogs logs = read({file("a.txt", log_of("all_reduce", {"n", "n"}, zero + zero + two_rows))});
  EXPECT_EQ(
      logs.passed_over,
      std::vector<std::string>{"a.txt: rows that cannot be read, the first: line 7: the time is not above 0 (2 rows)"});
  EXPECT_EQ(logs.nodes.at(0).rows.size(), 2U);
}

TEST_F(NodeLogsTest, TimesOfZeroInARecordAreNotJudged) {
  RunRecord record{.executor = "nccl", .compute = "real", .links = "nccl"};
  record.micro_benchmarks = {{.op = "all_gather", .bytes = 1 << 20, .ranks = 2, .samples = {Duration{}}}};
  const NodeLogs logs = read({file("a.json", to_json(record))});
  ASSERT_EQ(logs.nodes.size(), 1U);
  EXPECT_TRUE(logs.nodes[0].rows.empty());
  EXPECT_EQ(logs.passed_over,
            std::vector<std::string>{
                "a.json: rows that cannot be read, the first: all_gather: the time is not above 0 (1 row)"});
}

TEST_F(NodeLogsTest, RecordsOfLinksHaveCopies) {
  RunRecord record{.executor = "cuda", .compute = "real", .links = "copies"};
  record.micro_benchmarks = {{.op = "device_to_device_memcpy_write_ce",
                              .bytes = 64 << 20,
                              .ranks = 2,
                              .rank = 0,
                              .peer = 1,
                              .samples = {std::chrono::milliseconds(1)}}};
  const NodeLogs logs = read({file("a.json", to_json(record))});
  ASSERT_TRUE(logs.unread.empty()) << logs.unread.front();
  ASSERT_EQ(logs.nodes.size(), 1U);
  ASSERT_EQ(logs.nodes[0].copies.size(), 1U);
  EXPECT_EQ(logs.nodes[0].copies[0].copies.size(), 1U);
}

const std::string dcgm =
    R"({"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [{"name": "memory", "results": [
        {"entity_group": "GPU", "entity_group_id": 1, "entity_id": 2, "status": "Fail", "warnings": [{"warning": "bits"}]}
       ]}]}], "version": "4.2.3"}})";

TEST_F(NodeLogsTest, TheNvbandwidthTestOfDcgmIsNotOutputOfNvbandwidth) {
  std::string text = dcgm;
  text.replace(text.find("\"memory\""), 8, "\"nvbandwidth\"");
  const NodeLogs logs = read({file("a.json", text)});
  ASSERT_TRUE(logs.unread.empty()) << logs.unread.front();
  ASSERT_EQ(logs.nodes.at(0).findings.size(), 1U);
  EXPECT_EQ(logs.nodes[0].findings[0].test, "nvbandwidth");
  EXPECT_EQ(logs.nodes[0].findings[0].cause, "a copy is below DCGM's floor");
}

std::string bandwidth_of(const std::string& host) {
  return R"json({"nvbandwidth": {"version": "v0.8", "GPU Device list": ["0: NVIDIA H100: ()json" + host + R"json()"],
      "testcases": [{"name": "device_to_device_memcpy_read_ce", "status": "Passed",
       "bandwidth_description": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
       "bandwidth_matrix": [["N/A", "390"], ["391", "N/A"]], "sum": 781},
      {"name": "host_device_latency_sm", "status": "Passed", "bandwidth_description": "CPU(row) <-> GPU(column) (ns)",
       "bandwidth_matrix": [["812"]]}]}})json";
}

TEST_F(NodeLogsTest, ResultsOfOtherToolsJoinANodeByHostFolderOrFileName) {
  std::filesystem::create_directory("node-1");
  const NodeLogs logs = read({file("a.txt", log_of("all_reduce", {"node-1", "node-1"}, two_rows)),
                              file("bw.json", bandwidth_of("node-1")), file("node-1/diag.json", dcgm),
                              file("node-1.dcgm.json", dcgm), file("stray.json", dcgm)});
  ASSERT_TRUE(logs.unread.empty()) << logs.unread.front();
  ASSERT_EQ(logs.nodes.size(), 2U);
  EXPECT_EQ(logs.nodes[0].name, "node-1");
  EXPECT_EQ(logs.nodes[0].rows.size(), 2U);
  ASSERT_EQ(logs.nodes[0].copies.size(), 1U);
  EXPECT_EQ(logs.nodes[0].copies[0].copies.size(), 2U);
  ASSERT_EQ(logs.nodes[0].findings.size(), 2U);
  EXPECT_EQ(logs.nodes[0].findings[0].subject, "GPU 2");
  EXPECT_EQ(logs.nodes[1].name, "stray.json");
  EXPECT_EQ(logs.passed_over,
            std::vector<std::string>{"bw.json: host_device_latency_sm: the model has no rate for this test"});
}

TEST_F(NodeLogsTest, ABrokenMatrixIsNamedAndTheRestIsRead) {
  const NodeLogs logs = read({file("bw.json", R"({"nvbandwidth": {"testcases": [{"name": "a"}]}})"),
                              file("a.txt", log_of("all_reduce", {"n", "n"}, two_rows))});
  EXPECT_EQ(logs.nodes.size(), 1U);
  ASSERT_EQ(logs.unread.size(), 1U);
  EXPECT_TRUE(logs.unread[0].starts_with("bw.json: ")) << logs.unread[0];
}

TEST_F(NodeLogsTest, ForeignNamesAreEscaped) {
  const NodeLogs logs = read({file("a.txt", log_of("all_reduce", {"no\x1b[31mde", "no\x1b[31mde"}, two_rows))});
  ASSERT_EQ(logs.nodes.size(), 1U);
  EXPECT_EQ(logs.nodes.front().name, "no\\x1b[31mde");
}

}  // namespace
}  // namespace commfuse::validate
