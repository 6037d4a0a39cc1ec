// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/machine.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "model/cost/communication.h"
#include "tests/model/hardware/made_links.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

using test::gigabytes;
using test::link;
using test::two_nodes;

TEST(Machine, GpusAreCountedOverAllNodes) { EXPECT_EQ(total_gpus(two_nodes()), 8); }

TEST(PeerBetween, IsTheLinkInANodeAndTheNetworkAcross) {
  const Machine machine = two_nodes();
  EXPECT_EQ(peer_between(machine, 0, 3).rate.value, gigabytes(100));
  EXPECT_EQ(peer_between(machine, 4, 7).rate.value, gigabytes(100));
  EXPECT_EQ(peer_between(machine, 3, 4).rate.value, gigabytes(10));
  EXPECT_EQ(peer_between(machine, 7, 0).rate.value, gigabytes(10));
  // A step of a ring over all eight GPUs: 1 MB takes 5 + 10 us inside a node, and 5 + 100 us between nodes.
  EXPECT_EQ(p2p_time(peer_between(machine, 2, 3), Bytes{1'000'000}), Duration{15us});
  EXPECT_EQ(p2p_time(peer_between(machine, 3, 4), Bytes{1'000'000}), Duration{105us});
}

TEST(CollectiveOver, IsTheNetworkIfOneGpuIsInAnotherNode) {
  const Machine machine = two_nodes();
  EXPECT_EQ(collective_over(machine, 0, 4).rate.value, gigabytes(200));
  EXPECT_EQ(collective_over(machine, 4, 4).rate.value, gigabytes(200));
  EXPECT_EQ(collective_over(machine, 0, 5).rate.value, gigabytes(40));
  EXPECT_EQ(collective_over(machine, 2, 4).rate.value, gigabytes(40));
  EXPECT_EQ(collective_over(machine, 3, 1).rate.value, gigabytes(200));
}

TEST(ShareOfNics, FollowsTheShareOfGpusAndIsAtLeastOneNic) {
  EXPECT_EQ(share_of_nics({8, 8}, {8, 8}), 1.0);
  EXPECT_EQ(share_of_nics({1, 1}, {8, 8}), 0.125);
  EXPECT_EQ(share_of_nics({1, 1}, {8, 2}), 0.5);
  EXPECT_EQ(share_of_nics({6, 6}, {8, 2}), 0.75);
  EXPECT_EQ(share_of_nics({1, 1}, {4, 16}), 0.25);
}

TEST(ShareOfNics, IsSmallerIfOtherGpusUseTheNicsToo) {
  for (const int nics : {1, 2, 4, 8}) {
    EXPECT_EQ(share_of_nics({1, 8}, {8, nics}), 0.125) << nics;
  }
  EXPECT_EQ(share_of_nics({2, 4}, {8, 1}), 0.5);
  EXPECT_EQ(share_of_nics({2, 4}, {8, 8}), 0.25);  // Four of eight GPUs reach half of the NICs.
  Machine machine = two_nodes();
  machine.nics_per_node = 1;
  EXPECT_EQ(part_beside(machine, {1, 4}), 0.25);
  machine.nics_per_node = 4;
  EXPECT_EQ(part_beside(machine, {1, 4}), 1.0);
}

TEST(CollectiveAcross, DependsOnTheGpusPerNodeOfAGroup) {
  Machine machine = two_nodes();
  EXPECT_EQ(&collective_across(machine, 2), &machine.network->collective);  // The file has no rates for groups.
  machine.network_groups = std::make_shared<const std::vector<CollectiveParameters>>(
      std::vector<CollectiveParameters>{link(1, 10).collective, link(1, 20).collective, link(1, 30).collective});
  EXPECT_EQ(collective_across(machine, 1).rate.value, gigabytes(10));
  EXPECT_EQ(collective_across(machine, 3).rate.value, gigabytes(30));
  EXPECT_EQ(&collective_across(machine, 4), &machine.network->collective);
}

TEST(WithRates, ScalesTreesToo) {
  CollectiveParameters collective = link(1, 10).collective;
  TreeParameters tree{{{.value = 50us}, {.value = 10us}, {.value = gigabytes(1)}}};
  tree.ll = TreeProtocol{{}, {}, {.value = gigabytes(2)}, Parameter<BytesPerSecond>{.value = gigabytes(4)}};
  collective.tree = std::make_shared<const TreeParameters>(tree);
  const CollectiveParameters half = with_rates(collective, 0.5);
  EXPECT_EQ(half.tree->rate.value, gigabytes(0.5));
  EXPECT_EQ(half.tree->ll->rate.value, gigabytes(1));
  EXPECT_EQ(half.tree->ll->two_nodes_rate->value, gigabytes(2));
  EXPECT_EQ(half.tree->level_latency.value, Duration{10us});
}

TEST(WithRates, OwnSharesRiseWithFasterWiresOnly) {
  CollectiveParameters collective = link(1, 10).collective;
  collective.own_copy_rate.value = gigabytes(100);
  collective.own_sum_rate = {.value = gigabytes(150)};
  const CollectiveParameters twice = with_rates(collective, 2.0);
  EXPECT_EQ(twice.own_copy_rate.value, gigabytes(200));
  EXPECT_EQ(twice.own_sum_rate->value, gigabytes(300));
  for (const CollectiveParameters& same :
       {with_rates(collective, 0.5), with_rates(collective, 2.0, RateChange::supposed_wires)}) {
    EXPECT_EQ(same.own_copy_rate.value, gigabytes(100));
    EXPECT_EQ(same.own_sum_rate->value, gigabytes(150));
  }
}

TEST(PeerBetween, ARingOnAMeshUsesOneWireWhereACollectiveUsesAll) {
  // Eight GPUs on a mesh of 28 GB/s wires. A ring step of 28 MB takes 5 us + 1 ms between any two GPUs; a collective
  // whose rate is the sum of seven wires moves seven such blocks in 10 us + 1 ms.
  const TopologyPlan plan{
      .kind = NodeKind::full_mesh, .gpus_per_node = 8, .gpu_rate = gigabytes(28), .hop_latency = 1us};
  Machine machine{.name = "mesh", .link = link(28, 7 * 28), .gpus_per_node = 8};
  const Topology topology = build_topology(plan);
  machine.pair_peers = pair_peers_of(topology, 8, machine.link.peer);
  EXPECT_EQ(machine.pair_peers, nullptr);  // All pairs are equal.
  for (int gpu = 0; gpu < 8; ++gpu) {
    const int next = (gpu + 1) % 8;
    EXPECT_EQ(p2p_time(peer_between(machine, gpu, next), Bytes{28'000'000}), Duration{1005us});
    EXPECT_EQ(route_between(topology, gpu, next)->rate, gigabytes(28));
  }
  EXPECT_EQ(all_gather_time(collective_over(machine, 0, 8), 8, Bytes{224'000'000}), Duration{1010us});
}

TEST(PeerBetween, APairOfAPcieTreeSeesItsSlowestHop) {
  // The nearest pair gets 40 of the 60 GB/s of its wires. A pair that meets at the root gets 30/60 of that and has two
  // hops more; a pair across the two halves gets 20/60 and has three hops more.
  Machine machine{.name = "box", .link = link(40, 20), .gpus_per_node = 8};
  const Topology topology = build_topology(test::pcie_tree());
  machine.pair_peers = pair_peers_of(topology, 8, machine.link.peer);
  ASSERT_NE(machine.pair_peers, nullptr);
  EXPECT_EQ(machine.pair_peers->kinds.size(), 3u);
  EXPECT_EQ(peer_between(machine, 6, 7).rate.value, gigabytes(40));
  EXPECT_EQ(peer_between(machine, 6, 7).latency.value, Duration{5us});
  EXPECT_EQ(peer_between(machine, 1, 2).rate.value, gigabytes(20));
  EXPECT_EQ(peer_between(machine, 1, 2).latency.value, Duration{7us});
  EXPECT_DOUBLE_EQ(peer_between(machine, 3, 4).rate.value.value, 40e9 / 3);
  EXPECT_EQ(peer_between(machine, 3, 4).latency.value, Duration{8us});
  EXPECT_EQ(&peer_between(machine, 4, 3), &peer_between(machine, 7, 0));
}

TEST(CollectiveOver, AGroupThatAvoidsTheSlowestWireIsProportionallyFaster) {
  Machine machine{.name = "box", .link = link(40, 20), .gpus_per_node = 8};
  const ProtocolParameters& protocol = machine.link.collective;
  machine.link.collective.all_to_all =
      std::make_shared<const AllToAllParameters>(AllToAllParameters{{.value = Bytes{1'000}}, protocol, protocol});
  const Topology topology = build_topology(test::pcie_tree());
  machine.pair_peers = pair_peers_of(topology, 8, machine.link.peer);
  machine.group_collectives = group_collectives_of(GroupRates(topology, 8), 8, machine.link.collective);
  ASSERT_NE(machine.group_collectives, nullptr);
  EXPECT_EQ(collective_over(machine, 0, 8).rate.value, gigabytes(20));
  EXPECT_EQ(collective_over(machine, 0, 5).rate.value, gigabytes(20));      // over both roots
  EXPECT_DOUBLE_EQ(collective_over(machine, 0, 3).rate.value.value, 30e9);  // wires of 30 instead of 20 GB/s
  EXPECT_DOUBLE_EQ(collective_over(machine, 0, 2).rate.value.value, 60e9);  // wires of 60 instead of 20 GB/s
  EXPECT_DOUBLE_EQ(collective_over(machine, 0, 2).all_to_all->large.rate.value.value, 60e9);
  EXPECT_EQ(collective_over(machine, 0, 2).base_latency.value, Duration{10us});
}

TEST(CollectiveOver, GroupsOnASwitchAreEqual) {
  const Topology topology =
      build_topology({.kind = NodeKind::nvswitch, .gpus_per_node = 8, .gpu_rate = gigabytes(28), .hop_latency = 1us});
  EXPECT_EQ(group_collectives_of(GroupRates(topology, 8), 8, link(28, 28).collective), nullptr);
}

TEST(RateAcross, IsAWholeNicOrAShareOfTheNics) {
  Machine machine = two_nodes();  // four GPUs per node; one peer gets 10 GB/s, a collective over all gets 40
  machine.nics_per_node = 4;
  machine.network_groups = std::make_shared<const std::vector<CollectiveParameters>>(
      std::vector<CollectiveParameters>{link(1, 10).collective, link(1, 20).collective, link(1, 30).collective});
  EXPECT_EQ(rate_across(machine, {4, 4}), gigabytes(10));
  EXPECT_EQ(rate_across(machine, {1, 1}), gigabytes(10));
  machine.network->peer.aggregate_rate.value = gigabytes(12);  // Many peers fill the NIC better.
  EXPECT_EQ(rate_across(machine, {2, 2}), gigabytes(12));
  machine.nics_per_node = 1;
  machine.network->collective.rate.value = gigabytes(4);
  EXPECT_EQ(rate_across(machine, {4, 4}), gigabytes(3));
  EXPECT_EQ(rate_across(machine, {1, 4}), gigabytes(3));
}

TEST(MachineDeathTest, AskingForAnAbsentGpuIsAProgrammingError) {
  EXPECT_DEATH((void)peer_between(two_nodes(), 0, 8), "the machine has this GPU");
  EXPECT_DEATH((void)peer_between(two_nodes(), 2, 2), "an exchange joins two different GPUs");
  EXPECT_DEATH((void)collective_over(two_nodes(), 4, 5), "the machine has this GPU");
}

}  // namespace
}  // namespace commfuse
