// SPDX-License-Identifier: Apache-2.0
#include "validate/health/expected_node.h"

#include <gtest/gtest.h>

namespace commfuse::validate {
namespace {

const ExpectedNode h100_node{.machine = "dgx-h100-x2",
                             .gpu = "H100",
                             .gpus = 2,
                             .has_nvlink = true,
                             .pcie_speed = 32.0,
                             .pcie_width = 16,
                             .nics = 2,
                             .nic_gigabits = 400.0};

struct Facts {
  NodeFacts node;
  ManagementFacts management;
};

/// Returns a node without a fault.
Facts healthy_node() {
  Facts facts;
  for (const char* const address : {"0000:1b:00.0", "0000:2b:00.0"}) {
    const PciFunction gpu{.address = address,
                          .kind = PciKind::gpu,
                          .is_nvidia = true,
                          .speed = 2.5,  // idle
                          .max_speed = 32.0,
                          .width = 16,
                          .max_width = 16};
    facts.node.gpus.push_back({{gpu}});
    facts.node.ports.push_back({.device = "mlx5_0", .state = "4: ACTIVE", .gigabits = 400.0});
    facts.management.gpus.push_back({.name = "NVIDIA H100 80GB HBM3", .address = address, .links = 18, .links_up = 18});
  }
  return facts;
}

std::vector<HealthCheck> checks_on(const Facts& facts) {
  return expected_checks(h100_node, facts.node, facts.management);
}

TEST(ExpectedNode, AHealthyNodeIsOk) {
  const std::vector<HealthCheck> checks = checks_on(healthy_node());
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_EQ(checks[0].name, "expected");
  EXPECT_EQ(checks[0].status, HealthStatus::ok);
  EXPECT_EQ(checks[0].found, "the node matches dgx-h100-x2");
}

TEST(ExpectedNode, EveryShortfallIsBad) {
  const auto single_complaint = [](const Facts& facts) {
    const std::vector<HealthCheck> checks = checks_on(facts);
    EXPECT_EQ(checks.size(), 1U);
    EXPECT_EQ(checks.at(0).status, HealthStatus::bad);
    EXPECT_FALSE(checks.at(0).remedy.empty());
    return checks.at(0).found + "; " + checks.at(0).wrong;
  };
  Facts facts = healthy_node();
  facts.management.gpus.pop_back();
  EXPECT_EQ(single_complaint(facts), "1 of 2 GPUs; dgx-h100-x2 has 2");
  facts = healthy_node();
  facts.management.gpus[1].name = "NVIDIA A100-SXM4-80GB";
  EXPECT_EQ(single_complaint(facts), "NVIDIA A100-SXM4-80GB; dgx-h100-x2 has H100");
  facts = healthy_node();
  facts.management.gpus[0].links_up = 0;
  EXPECT_EQ(single_complaint(facts), "no NVLink is up; dgx-h100-x2 has NVLink");
  facts = healthy_node();
  facts.node.gpus[0].steps[0].width = 8;
  EXPECT_EQ(single_complaint(facts), "PCIe generation 5 x8; dgx-h100-x2 has PCIe generation 5 x16");
  facts = healthy_node();
  facts.node.gpus[0].steps.push_back({.address = "0000:1a:01.0", .max_speed = 16.0, .width = 16});
  EXPECT_EQ(single_complaint(facts), "PCIe generation 4 x16; dgx-h100-x2 has PCIe generation 5 x16");
  facts = healthy_node();
  facts.node.ports[0].gigabits = 200.0;
  EXPECT_EQ(single_complaint(facts), "1 of 2 active ports of 400 Gb/s or more; dgx-h100-x2 has 2 NICs of 400 Gb/s");
  facts = healthy_node();
  facts.node.ports[1].state = "1: DOWN";
  EXPECT_EQ(single_complaint(facts), "1 of 2 active ports of 400 Gb/s or more; dgx-h100-x2 has 2 NICs of 400 Gb/s");
}

// "H20" is a part of "H200", and "B200" of "GB200".
TEST(ExpectedNode, AModelWhoseNameContainsTheExpectedOneIsBad) {
  const auto status = [](const char* expected, const char* name) {
    Facts facts;
    facts.management.gpus.push_back({.name = name});
    return expected_checks({.machine = "x", .gpu = expected, .gpus = 1}, facts.node, facts.management).at(0).status;
  };
  EXPECT_EQ(status("H20", "NVIDIA H200"), HealthStatus::bad);
  EXPECT_EQ(status("B200", "NVIDIA GB200"), HealthStatus::bad);
  EXPECT_EQ(status("H200", "NVIDIA GH200 480GB"), HealthStatus::bad);
  EXPECT_EQ(status("H20", "NVIDIA H20"), HealthStatus::ok);
  EXPECT_EQ(status("H20", "NVIDIA H20-3e"), HealthStatus::ok);
  EXPECT_EQ(status("A100", "NVIDIA A100-SXM4-80GB"), HealthStatus::ok);
}

TEST(ExpectedNode, ASingleNicIsSingular) {
  const ExpectedNode expected{.machine = "azure-nc96ads-x2", .nics = 1, .nic_gigabits = 80.0};
  EXPECT_EQ(expected_checks(expected, {}, {}).at(0).wrong, "azure-nc96ads-x2 has 1 NIC of 80 Gb/s");
}

TEST(ExpectedNode, MoreGpusAreAWarningAndUnknownValuesAreNotChecked) {
  Facts facts = healthy_node();
  facts.management.gpus.push_back({.name = "NVIDIA H100", .links_up = 18});
  EXPECT_EQ(checks_on(facts).at(0).status, HealthStatus::warn);
  const ExpectedNode partly_known{.machine = "x", .gpu = "H100", .gpus = 2};
  facts = healthy_node();
  facts.node.ports.clear();
  facts.node.gpus[0].steps[0].width = 1;
  EXPECT_EQ(expected_checks(partly_known, facts.node, facts.management).at(0).status, HealthStatus::ok);
}

// Without the driver's library, the GPUs on the bus are counted.
TEST(ExpectedNode, GpusAreCountedOnTheBusWhereTheDriverIsSilent) {
  Facts facts = healthy_node();
  facts.management.gpus.clear();
  EXPECT_EQ(checks_on(facts).at(0).status, HealthStatus::ok);
  facts.node.gpus.pop_back();
  EXPECT_EQ(checks_on(facts).at(0).found, "1 of 2 GPUs");
}

}  // namespace
}  // namespace commfuse::validate
