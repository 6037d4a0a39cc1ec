// SPDX-License-Identifier: Apache-2.0
// Tests probes on a device that takes a microsecond for every call.
#include "validate/cuda/probes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/validate/cuda/fake_driver.h"
#include "validate/cuda/probe_tools.h"

namespace commfuse::validate {
namespace {

using test::FakeCluster;
using test::FakeDriver;

const ProbeStage& stage_named(std::string_view name) {
  return *std::ranges::find(probe_stages(), name, &ProbeStage::name);
}

const ProbeRow& row_named(const std::vector<ProbeRow>& rows, std::string_view probe) {
  return *std::ranges::find(rows, probe, &ProbeRow::probe);
}

TEST(Probes, AChainOfKernelsTakesTheSumOfItsLinks) {
  FakeCluster cluster;
  Device device(cluster.device(0));
  const std::vector<ProbeRow> rows = stage_named("launch").run(device, {.repetitions = 3});
  // 100 kernels, and the record at the end: every call takes a microsecond on this device.
  EXPECT_DOUBLE_EQ(row_named(rows, "kernel_gap").samples.at(0), 1.01);
  // Each link of this chain is a kernel, a record and a wait.
  EXPECT_DOUBLE_EQ(row_named(rows, "event_wake").samples.at(0), 3.01);
  EXPECT_DOUBLE_EQ(row_named(rows, "graph_node").samples.at(0), 1.01);
  EXPECT_EQ(row_named(rows, "host_launch").samples.size(), 3U);
}

TEST(Probes, RowsAreCommaSeparatedWithTheirMedian) {
  EXPECT_EQ(probe_header(), "stage,probe,parameters,unit,n,median,p10,p90\n");
  const ProbeRow row{.probe = "copy", .parameters = {{"bytes", "4096"}, {"ctas", "4"}}, .samples = {3.0, 1.0, 2.0}};
  EXPECT_EQ(to_csv("links", {&row, 1}), "links,copy,bytes=4096;ctas=4,us,3,2.0000,1.0000,3.0000\n");
}

TEST(Probes, RowsOfUnfinishedStagesAreDropped) {
  EXPECT_EQ(unfinished_row("links"), "links,unfinished,,share,1,1.0000,1.0000,1.0000\n");
  const std::string finished = probe_header() + "launch,spin,,us,1,1,1,1\n";
  const std::string after = "links,copy,bytes=4096,us,1,1,1,1\nlinks,copy,bytes=8192,us,1,1,1,1\n";
  EXPECT_EQ(without_unfinished(finished + after), finished + after);
  EXPECT_EQ(without_unfinished(finished + unfinished_row("links") + after), finished);
  EXPECT_EQ(without_unfinished(probe_header() + unfinished_row("launch") + "launch,spin,,us,1,1,1,1\n" + after),
            probe_header() + after);
  EXPECT_EQ(without_unfinished(probe_header()), probe_header());
}

TEST(Probes, EveryStageIsRequestedByName) {
  for (const ProbeStage& stage : probe_stages()) {
    EXPECT_FALSE(stage.name.empty());
    EXPECT_FALSE(stage.what.empty());
  }
  EXPECT_EQ(probe_stages().size(), 10U);
}

TEST(Probes, ReportsADeviceWithoutPartitions) {
  FakeCluster cluster;
  cluster.device(0).refuse_partitions();
  Device device(cluster.device(0));
  const std::vector<ProbeRow> rows = stage_named("partitions").run(device, {});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].probe, "partitions");
  EXPECT_EQ(rows[0].samples, std::vector<double>{0.0});
}

TEST(Probes, HalfAndMostOfAnH100AreReservedInSequence) {
  FakeCluster cluster(test::FakeOptions{.max_work = 0.0});  // with 132 multiprocessors, in groups of eight
  Device device(cluster.device(0));
  const std::vector<ProbeRow> rows = stage_named("partitions").run(device, {.repetitions = 1});
  ASSERT_EQ(rows.size(), 4U);
  const auto value = [](const ProbeRow& row, std::string_view name) {
    return std::ranges::find(row.parameters, name, [](const auto& parameter) { return parameter.first; })->second;
  };
  EXPECT_EQ(value(rows[0], "multiprocessors"), "66");
  EXPECT_EQ(value(rows[0], "set_apart"), "72");
  EXPECT_EQ(value(rows[2], "multiprocessors"), "116");
  EXPECT_EQ(value(rows[2], "set_apart"), "120");
}

TEST(Probes, ASmallGpuHasNoRowsOfMultiprocessorsThatItLacks) {
  FakeCluster cluster(test::FakeOptions{.max_work = 0.0, .multiprocessors = 16});
  Device device(cluster.device(0));
  const auto values = [&](std::string_view stage, std::string_view parameter) {
    std::set<std::string> values_of_rows;
    for (const ProbeRow& row : stage_named(stage).run(device, {.repetitions = 1, .quick = true})) {
      for (const auto& [name, value] : row.parameters) {
        if (name == parameter) {
          values_of_rows.insert(value);
        }
      }
    }
    return values_of_rows;
  };
  EXPECT_EQ(values("products", "multiprocessors"), std::set<std::string>{"16"});
  EXPECT_EQ(values("interference", "ctas"), std::set<std::string>{"4"});
  EXPECT_EQ(values("partitions", "multiprocessors"), std::set<std::string>{"8"});
}

TEST(Probes, NoStageRunsAnythingForTheFirstTimeBehindAGate) {
  for (const ProbeStage& stage : probe_stages()) {
    FakeCluster cluster(test::FakeOptions{.max_work = 0.0});  // throws at a first use behind a gate
    cluster.device(0).add_cudnn();
    Device device(cluster.device(0));
    ProbeOptions options{.repetitions = 1, .quick = true, .lengths = {16}};
    options.connect = [&](const NetworkOptions& network) {
      return std::make_unique<test::FakeNetwork>(cluster, 0, 1, network);
    };
    EXPECT_NO_THROW(static_cast<void>(stage.run(device, options))) << stage.name;
  }
}

TEST(Probes, AnExceptionUnderTheGateOpensIt) {
  FakeCluster cluster;
  Device device(cluster.device(0));
  EXPECT_THROW(probing::behind_gate(device, [&] { static_cast<void>(cluster.device(0).allocate({16})); }),
               std::runtime_error);
  EXPECT_TRUE(cluster.device(0).finish(std::chrono::seconds(1)));
  EXPECT_NO_THROW(static_cast<void>(cluster.device(0).allocate({16})));
}

/// Returns the rows of the stage `fused` for sequences of 16 tokens, which a host can compute.
std::vector<ProbeRow> rows_of_fused(FakeDriver& driver) {
  Device device(driver);
  return stage_named("fused").run(device, {.repetitions = 2, .lengths = {16}});
}

TEST(Probes, FusedAttentionIsComparedWithOurs) {
  FakeCluster cluster;
  cluster.device(0).add_cudnn();
  const std::vector<ProbeRow> rows = rows_of_fused(cluster.device(0));
  ASSERT_EQ(rows.size(), 12U);  // all queries and a quarter of them, causal and not: two times and a difference
  for (std::size_t i = 0; i < rows.size(); i += 3) {
    EXPECT_EQ(rows[i].parameters.back().second, "cudnn");
    EXPECT_EQ(rows[i].samples, (std::vector{2.0, 2.0}));  // the kernel, and the record at the end
    EXPECT_EQ(rows[i + 1].parameters.back().second, "cublaslt");
    EXPECT_EQ(rows[i + 2].probe, "fused_difference");
    EXPECT_EQ(rows[i + 2].samples, std::vector{0.0});
  }
}

TEST(Probes, AFusedAttentionWithoutItsMaskDiffersFromOurs) {
  FakeCluster cluster;
  cluster.device(0).add_cudnn(true);
  const std::vector<ProbeRow> rows = rows_of_fused(cluster.device(0));
  ASSERT_EQ(rows.size(), 12U);
  for (std::size_t i = 0; i < rows.size(); i += 6) {
    EXPECT_GT(rows[i + 2].samples.at(0), 0x1p-7) << "causal";
    EXPECT_EQ(rows[i + 5].samples, std::vector{0.0}) << "full";
  }
}

TEST(Probes, WithoutFusedAttentionOneRowReportsIt) {
  FakeCluster cluster;
  const std::vector<ProbeRow> rows = rows_of_fused(cluster.device(0));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].unit, "share");
  EXPECT_EQ(rows[0].samples, std::vector{0.0});
}

TEST(Probes, AMessageToTheOwnRankIsTimedWithANetwork) {
  FakeCluster cluster;
  Device device(cluster.device(0));
  EXPECT_TRUE(stage_named("nccl").run(device, {}).empty());
  ProbeOptions options{.repetitions = 2, .quick = true};
  options.connect = [&](const NetworkOptions& network) {
    return std::make_unique<test::FakeNetwork>(cluster, 0, 1, network);
  };
  const std::vector<ProbeRow> rows = stage_named("nccl").run(device, options);
  const auto attributed = [&](std::string_view blocking) {
    return std::ranges::find_if(rows,
                                [&](const ProbeRow& row) {
                                  return row.probe == "attributed" && row.parameters.at(0).second == blocking;
                                })
        ->samples;
  };
  EXPECT_EQ(attributed("yes"), std::vector{1.0});
  EXPECT_EQ(attributed("no"), std::vector{0.0});  // launched by a thread that has no label
  EXPECT_EQ(row_named(rows, "captured").samples, std::vector{1.0});
  EXPECT_EQ(row_named(rows, "windows").samples, std::vector{1.0});
  // The message, and the record at the end.
  EXPECT_DOUBLE_EQ(row_named(rows, "self_send").samples.at(0), 2.0);
  EXPECT_EQ(row_named(rows, "group_enqueue").samples.size(), 2U);
}

/// A network that sends one message and refuses the next, as NCCL may refuse to be captured.
class SendsOneMessage final : public Network {
 public:
  SendsOneMessage(FakeCluster& cluster, const NetworkOptions& options) : fake_(cluster, 0, 1, options) {}
  [[nodiscard]] std::string version() const override { return fake_.version(); }
  [[nodiscard]] std::vector<std::string> notes() const override { return {}; }
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int ranks() const override { return 1; }
  [[nodiscard]] std::size_t split(int color) override { return fake_.split(color); }
  void exchange(std::size_t communicator, StreamId stream, std::span<const MessageEnd> sends,
                std::span<const MessageEnd> receives) override {
    if (++messages_ > 1) {
      throw std::runtime_error("ncclGroupEnd failed: invalid usage");
    }
    fake_.exchange(communicator, stream, sends, receives);
  }
  void collective(std::size_t communicator, StreamId stream, CollectiveKind kind, const Panel& in,
                  const Panel& out) override {
    fake_.collective(communicator, stream, kind, in, out);
  }
  [[nodiscard]] std::optional<std::string> failure() override { return std::nullopt; }
  void abort() override {}

 private:
  test::FakeNetwork fake_;
  int messages_ = 0;
};

TEST(Probes, AFailedCaptureIsReportedAndEnds) {
  FakeCluster cluster;
  Device device(cluster.device(0));
  ProbeOptions options{.repetitions = 1, .quick = true};
  options.connect = [&](const NetworkOptions& network) -> std::unique_ptr<Network> {
    if (network.graphs) {
      return std::make_unique<SendsOneMessage>(cluster, network);
    }
    return std::make_unique<test::FakeNetwork>(cluster, 0, 1, network);
  };
  const std::vector<ProbeRow> rows = stage_named("nccl").run(device, options);
  EXPECT_EQ(row_named(rows, "captured").samples, std::vector{0.0});
  EXPECT_EQ(row_named(rows, "windows").samples, std::vector{1.0});  // its memory cannot be allocated in a capture
  EXPECT_DOUBLE_EQ(row_named(rows, "self_send").samples.at(0), 2.0);
}

TEST(Probes, RowsBeforeAFailureAreReported) {
  FakeCluster cluster;
  Device device(cluster.device(0));
  std::vector<std::string> reported;
  ProbeOptions options{.repetitions = 1, .quick = true};
  options.on_row = [&](const ProbeRow& row) { reported.push_back(row.probe); };
  options.connect = [&](const NetworkOptions& network) { return std::make_unique<SendsOneMessage>(cluster, network); };
  EXPECT_THROW(static_cast<void>(stage_named("nccl").run(device, options)), std::runtime_error);
  EXPECT_EQ(reported, (std::vector<std::string>{"init", "attributed", "attributed", "captured", "windows"}));
}

TEST(Probes, WithoutATracerOnlyItsRowsAreMissing) {
  FakeCluster cluster;
  cluster.device(0).refuse_traces();
  Device device(cluster.device(0));
  ProbeOptions options{.repetitions = 1, .quick = true};
  options.connect = [&](const NetworkOptions& network) {
    return std::make_unique<test::FakeNetwork>(cluster, 0, 1, network);
  };
  const auto probes_of = [&](std::string_view stage) {
    std::set<std::string> probes;
    for (const ProbeRow& row : stage_named(stage).run(device, options)) {
      probes.insert(row.probe);
    }
    return probes;
  };
  EXPECT_EQ(probes_of("engines"), (std::set<std::string>{"copy_by"}));
  EXPECT_EQ(probes_of("nccl"), (std::set<std::string>{"attributed", "captured", "graph_message", "group_enqueue",
                                                      "init", "self_send", "windows"}));
}

TEST(Probes, AnExceptionEndsATraceAndACapture) {
  FakeCluster cluster;
  test::FakeDriver& driver = cluster.device(0);
  Device device(driver);
  const auto refused = [] { throw std::runtime_error("refused"); };
  EXPECT_THROW(static_cast<void>(probing::spans_if_traced(device, refused)), std::runtime_error);
  EXPECT_FALSE(driver.is_tracing());
  EXPECT_THROW(
      {
        const Capture capture(driver, device.stream(0, false));
        refused();
      },
      std::runtime_error);
  EXPECT_NO_THROW(Allocation(driver, {256}));
}

}  // namespace
}  // namespace commfuse::validate
