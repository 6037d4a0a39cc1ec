// SPDX-License-Identifier: Apache-2.0
// Checks planted nodes on Ethernet: a healthy node, and nodes with one fault each.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/validate/health/planted_node.h"
#include "validate/health/across.h"
#include "validate/health/checks.h"

namespace commfuse::validate {
namespace {

using commfuse::test::PlantedNode;

const std::string port_0 = "sys/class/infiniband/mlx5_0/ports/1";

struct RoceChecks : testing::Test {
  RoceChecks() {
    node.plant_healthy_node();
    node.make_roce("mlx5_0", "eth2", "0a00:0001");
    node.make_roce("mlx5_1", "eth3", "0a00:0101");
  }
  /// Returns the checks roce and congestion.
  [[nodiscard]] std::vector<HealthCheck> checks() const {
    NodeFacts facts = node_facts(NodeFiles(node.root()));
    std::vector<HealthCheck> checks = health_checks(facts, {.missing = "no library"});
    std::erase_if(checks, [](const HealthCheck& check) { return check.name != "roce" && check.name != "congestion"; });
    return checks;
  }
  [[nodiscard]] std::vector<HealthCheck> complaints() const {
    std::vector<HealthCheck> reported = checks();
    std::erase_if(reported, [](const HealthCheck& check) { return check.status == HealthStatus::ok; });
    return reported;
  }
  PlantedNode node;
};

TEST_F(RoceChecks, AHealthyNodeIsOk) {
  const std::vector<HealthCheck> reported = checks();
  ASSERT_EQ(reported.size(), 2U);
  EXPECT_EQ(reported[0].status, HealthStatus::ok);
  EXPECT_EQ(reported[0].found, "2 ports with RoCE v2, GID index 3");
  EXPECT_EQ(reported[1].status, HealthStatus::ok);
  EXPECT_EQ(reported[1].found, "ECN on priority 3, trust dscp; no file shows PFC (dcb pfc show dev eth2)");
}

TEST_F(RoceChecks, APortWithoutAnyGidIsBad) {
  node.remove(port_0 + "/gids");
  node.remove(port_0 + "/gid_attrs");
  node.write(port_0 + "/gids/0", "0000:0000:0000:0000:0000:0000:0000:0000");
  node.write(port_0 + "/gid_attrs/types/0", "");
  node.write("sys/class/infiniband/mlx5_0/device/net/eth2/mtu", "4200");
  const std::vector<HealthCheck> reported = complaints();
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].subject, "mlx5_0/1");
  EXPECT_EQ(reported[0].status, HealthStatus::bad);
  EXPECT_EQ(reported[0].found, "no GID");
  EXPECT_EQ(reported[0].remedy, "give eth2 an IP address and bring it up (ip address add, ip link set up)");
}

TEST_F(RoceChecks, Version1AloneAndLinkLocalAddressesAloneAreWarnings) {
  node.write(port_0 + "/gid_attrs/types/1", "IB/RoCE v1");
  node.write(port_0 + "/gid_attrs/types/3", "IB/RoCE v1");
  std::vector<HealthCheck> reported = complaints();
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].status, HealthStatus::warn);
  EXPECT_EQ(reported[0].wrong, "RoCE v1 messages cannot cross a router, and NCCL requires v2");
  EXPECT_EQ(reported[0].found.substr(0, 57), "no GID of RoCE v2: 0 v1 fe80:0000:0000:0000:0e42:a1ff:fe0");
  node.write(port_0 + "/gid_attrs/types/1", "RoCE v2");
  reported = complaints();
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].wrong, "messages over this port cannot cross a router");
}

TEST_F(RoceChecks, PortsThatDifferInTheirIndexAreAWarning) {
  node.set_gid("mlx5_1", 3, "0000:0000:0000:0000:0000:0000:0000:0000", "", "eth3");
  node.set_gid("mlx5_1", 5, "0000:0000:0000:0000:0000:ffff:0a00:0101", "RoCE v2", "eth3");
  const std::vector<HealthCheck> reported = complaints();
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].status, HealthStatus::warn);
  EXPECT_EQ(reported[0].found, "GID index of RoCE v2: 3 on mlx5_0/1; 5 on mlx5_1/1");
}

TEST_F(RoceChecks, AddressesOfIpv6AloneNeedAFamilyOrAnIndex) {
  node.write(port_0 + "/gids/3", "2001:0db8:0000:0000:0000:0000:0000:0001");
  const std::vector<HealthCheck> reported = complaints();
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].status, HealthStatus::warn);
  EXPECT_EQ(reported[0].remedy, "set NCCL_IB_ADDR_FAMILY=AF_INET6, or give eth2 an IPv4 address");
  node.write("etc/nccl.conf", "NCCL_IB_GID_INDEX=3\nNCCL_IB_GID_INDEX=5\n");  // the first line is used
  EXPECT_EQ(complaints(), std::vector<HealthCheck>{});
}

TEST_F(RoceChecks, AnIndexThatThePortLacksOrOfVersion1IsBad) {
  node.write("etc/nccl.conf", "# for all jobs\nNCCL_DEBUG=WARN\nNCCL_IB_GID_INDEX=3");
  EXPECT_EQ(complaints(), std::vector<HealthCheck>{});
  node.write(port_0 + "/gids/3", "0000:0000:0000:0000:0000:0000:0000:0000");
  std::vector<HealthCheck> reported = complaints();
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].status, HealthStatus::bad);
  EXPECT_EQ(reported[0].wrong, "NCCL_IB_GID_INDEX is 3, which this port lacks");
  EXPECT_EQ(reported[0].remedy, "give eth2 an IP address, and unset NCCL_IB_GID_INDEX");
  node.write("etc/nccl.conf", "NCCL_IB_GID_INDEX=2");
  reported = complaints();
  ASSERT_EQ(reported.size(), 2U);
  EXPECT_EQ(reported[1].found, "GID 2 is IB/RoCE v1");
  EXPECT_EQ(reported[1].remedy, "set NCCL_IB_GID_INDEX=3, or unset it: NCCL 2.21 and later find the index");
}

TEST_F(RoceChecks, AnIndexForAPortWithoutAnyGidIsBad) {
  for (int index = 0; index < 6; ++index) {
    node.set_gid("mlx5_0", index, "0000:0000:0000:0000:0000:0000:0000:0000", "", "");
  }
  node.write("sys/class/infiniband/mlx5_0/device/net/eth2/mtu", "4200");
  node.write("etc/nccl.conf", "NCCL_IB_GID_INDEX=3");
  const std::vector<HealthCheck> reported = complaints();
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].found, "no GID");
  EXPECT_EQ(reported[0].wrong, "NCCL_IB_GID_INDEX is 3, which this port lacks");
}

TEST_F(RoceChecks, AnIndexOfALinkLocalAddressIsAWarning) {
  node.write(port_0 + "/gid_attrs/types/1", "RoCE v2");
  node.write("etc/nccl.conf", "NCCL_IB_GID_INDEX=1");
  const std::vector<HealthCheck> reported = complaints();
  ASSERT_FALSE(reported.empty());
  EXPECT_EQ(reported[0].subject, "mlx5_0/1");
  EXPECT_EQ(reported[0].status, HealthStatus::warn);
  EXPECT_EQ(reported[0].found.substr(0, 36), "GID 1 is the link-local address fe80");
  EXPECT_EQ(reported[0].remedy, "set NCCL_IB_GID_INDEX=3");
}

// The first usable indices of the ports differ, 3 and 5, but both ports have 5.
TEST_F(RoceChecks, AnIndexThatAllPortsHaveIsOk) {
  node.set_gid("mlx5_0", 5, "0000:0000:0000:0000:0000:ffff:0a00:0201", "RoCE v2", "eth2");
  node.set_gid("mlx5_1", 3, "0000:0000:0000:0000:0000:0000:0000:0000", "", "eth3");
  node.set_gid("mlx5_1", 5, "0000:0000:0000:0000:0000:ffff:0a00:0101", "RoCE v2", "eth3");
  EXPECT_EQ(checks().at(0).found, "2 ports with RoCE v2, GID index 5");
  node.write("etc/nccl.conf", "NCCL_IB_GID_INDEX=5");
  EXPECT_EQ(checks().at(0).found, "2 ports with RoCE v2, GID index 5");
}

TEST_F(RoceChecks, TypesThatLinuxDoesNotShowAreUnknown) {
  node.remove(port_0 + "/gid_attrs");
  const std::vector<HealthCheck> reported = complaints();
  ASSERT_EQ(reported.size(), 2U);  // the interface is not known either
  EXPECT_EQ(reported[0].status, HealthStatus::unknown);
  EXPECT_EQ(reported[0].wrong, "the versions of RoCE were not checked");
  EXPECT_EQ(reported[1].wrong, "ECN and PFC were not checked");
}

TEST_F(RoceChecks, EcnThatIsOffOrOnOneSideIsAWarning) {
  node.set_ecn("eth2", 3, "1", "0");
  node.set_ecn("eth3", 3, "0", "0");
  const std::vector<HealthCheck> reported = complaints();
  ASSERT_EQ(reported.size(), 2U);
  EXPECT_EQ(reported[0].found, "ECN: receivers notify on priority 3, senders react on no priority");
  EXPECT_EQ(reported[1].found, "ECN: receivers notify on no priority, senders react on no priority");
  EXPECT_EQ(reported[1].status, HealthStatus::warn);
  EXPECT_NE(reported[1].remedy.find("/sys/class/net/eth3/ecn/roce_np/enable/3"), std::string::npos);
}

TEST_F(RoceChecks, TrustOfVlanTagsAndPortsThatDifferAreWarnings) {
  node.write("sys/class/net/eth2/qos/trust", "pcp");
  EXPECT_EQ(complaints().at(0).remedy, "run mlnx_qos -i eth2 --trust dscp, unless RoCE uses a VLAN with priorities");
  node.write("sys/class/net/eth2/qos/trust", "dscp");
  node.set_ecn("eth2", 4, "1", "1");
  const std::vector<HealthCheck> reported = complaints();
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].found, "ECN on priorities 3, 4, trust dscp; ECN on priority 3, trust dscp");
}

TEST_F(RoceChecks, LossesWithoutAMarkAreAWarning) {
  node.write(port_0 + "/hw_counters/packet_seq_err", "4711");
  EXPECT_EQ(complaints(), std::vector<HealthCheck>{});  // packets were marked, so the switches do mark
  node.write(port_0 + "/hw_counters/np_ecn_marked_roce_packets", "0");
  const std::vector<HealthCheck> reported = complaints();
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].found,
            "peers reported 4711 sequence gaps but no packet was marked by ECN, since the driver was loaded");
  node.write(port_0 + "/hw_counters/packet_seq_err", "99");
  EXPECT_EQ(complaints(), std::vector<HealthCheck>{});
}

TEST_F(RoceChecks, LossesAfterCongestionMarksAreNotAWarning) {
  node.write(port_0 + "/hw_counters/packet_seq_err", "4711");
  node.write(port_0 + "/hw_counters/np_ecn_marked_roce_packets", "0");
  node.write(port_0 + "/hw_counters/rp_cnp_handled", "12");
  EXPECT_EQ(complaints(), std::vector<HealthCheck>{});
}

TEST_F(RoceChecks, ADriverThatShowsTrustButNoEcnIsUnknown) {
  node.remove("sys/class/net/eth2/ecn");
  const std::vector<HealthCheck> reported = complaints();
  ASSERT_FALSE(reported.empty());
  EXPECT_EQ(reported[0].status, HealthStatus::unknown);
  EXPECT_EQ(reported[0].found, "trust dscp, and no file shows ECN");
}

TEST_F(RoceChecks, ADriverThatShowsNothingIsUnknownAndNamesTheTool) {
  for (const char* const name : {"eth2", "eth3"}) {
    node.remove(std::string("sys/class/net/") + name);
  }
  const std::vector<HealthCheck> reported = complaints();
  ASSERT_EQ(reported.size(), 2U);
  EXPECT_EQ(reported[0].status, HealthStatus::unknown);
  EXPECT_EQ(reported[0].remedy, "look at dcb pfc show dev eth2, or at mlnx_qos -i eth2");
}

TEST_F(RoceChecks, PortsThatAreDownAreLeftToTheCheckOfPorts) {
  node.remove(port_0 + "/gids");
  node.set_port("mlx5_0", "1: DOWN", "2: Polling", "10 Gb/sec (4X SDR)");
  EXPECT_EQ(complaints(), std::vector<HealthCheck>{});
}

TEST_F(RoceChecks, SurviveFilesWithAnyContent) {
  const std::string anything = "\xff\x1b[2J 99999999999999999999 ../.. nan -5";
  for (const char* const name :
       {"/gids/3", "/gid_attrs/types/3", "/gid_attrs/ndevs/0", "/hw_counters/packet_seq_err"}) {
    node.write(port_0 + name, anything);
    EXPECT_FALSE(checks().empty());
  }
  node.write("etc/nccl.conf", "NCCL_IB_GID_INDEX=99999999999999999999");
  EXPECT_FALSE(checks().empty());
}

}  // namespace
}  // namespace commfuse::validate
