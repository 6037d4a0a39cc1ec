// SPDX-License-Identifier: Apache-2.0
// What is asked of a device, on one that takes a microsecond for everything.
#include "validate/cuda/probes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/validate/cuda/fake_driver.h"

namespace commfuse::validate {
namespace {

using test::FakeCluster;

const ProbeStage& stage_named(std::string_view name) {
  return *std::ranges::find(probe_stages(), name, &ProbeStage::name);
}

const ProbeRow& row_named(const std::vector<ProbeRow>& rows, std::string_view probe) {
  return *std::ranges::find(rows, probe, &ProbeRow::probe);
}

TEST(Probes, AChainOfKernelsTakesWhatItsLinksTake) {
  FakeCluster cluster;
  Device device(cluster.device(0));
  const std::vector<ProbeRow> rows = stage_named("launch").ask(device, {.repetitions = 3});
  // 100 kernels, and the record at the end: everything is a microsecond on this device.
  EXPECT_DOUBLE_EQ(row_named(rows, "kernel_gap").samples.at(0), 1.01);
  // A kernel, a record and a wait are a link here.
  EXPECT_DOUBLE_EQ(row_named(rows, "event_wake").samples.at(0), 3.01);
  EXPECT_DOUBLE_EQ(row_named(rows, "graph_node").samples.at(0), 1.01);
  EXPECT_EQ(row_named(rows, "host_launch").samples.size(), 3U);
}

TEST(Probes, RowsAreCommaSeparatedWithTheirMedian) {
  EXPECT_EQ(probe_header(), "stage,probe,parameters,unit,n,median,p10,p90\n");
  const ProbeRow row{.probe = "copy", .parameters = {{"bytes", "4096"}, {"ctas", "4"}}, .samples = {3.0, 1.0, 2.0}};
  EXPECT_EQ(to_csv("links", {&row, 1}), "links,copy,bytes=4096;ctas=4,us,3,2.0000,1.0000,3.0000\n");
}

TEST(Probes, EveryStageIsAskedForByAName) {
  for (const ProbeStage& stage : probe_stages()) {
    EXPECT_FALSE(stage.name.empty());
    EXPECT_FALSE(stage.what.empty());
  }
  EXPECT_EQ(probe_stages().size(), 9U);
}

TEST(Probes, ADeviceThatSetsNothingApartSaysSo) {
  FakeCluster cluster;
  cluster.device(0).set_nothing_apart();
  Device device(cluster.device(0));
  const std::vector<ProbeRow> rows = stage_named("partitions").ask(device, {});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].probe, "partitions");
  EXPECT_EQ(rows[0].samples, std::vector<double>{0.0});
}

TEST(Probes, AMessageToOneselfIsTimedWhereThereIsANetwork) {
  FakeCluster cluster;
  Device device(cluster.device(0));
  EXPECT_TRUE(stage_named("nccl").ask(device, {}).empty());
  test::FakeNetwork network(cluster, 0);
  const std::vector<ProbeRow> rows =
      stage_named("nccl").ask(device, {.repetitions = 2, .quick = true, .network = &network});
  // The message, and the record at the end.
  EXPECT_DOUBLE_EQ(row_named(rows, "self_send").samples.at(0), 2.0);
  EXPECT_EQ(row_named(rows, "group_enqueue").samples.size(), 2U);
}

}  // namespace
}  // namespace commfuse::validate
