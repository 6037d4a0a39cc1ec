// SPDX-License-Identifier: Apache-2.0
// Tests max-min sharing on the wires of whole machines, worked out by hand. In comments, rates without a unit are in
// GB/s and times in us: 3 MB at 10 take 300.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/model/hardware/made_links.h"
#include "tests/sim/engine/flows.h"

namespace commfuse::test {
namespace {

using namespace std::chrono_literals;
using Ends = std::vector<Duration>;

/// Returns a tree in which GPUs 0 and 1, 2 and 3 and so on share a bridge, and GPUs 0 to 3 and 4 to 7 a root. A
/// transfer gets half of the data sheet's rate, and so do all transfers of a wire together: 30 from a GPU to its
/// bridge, 15 from a bridge to its root, 10 between the roots. Latency is 5 us below one bridge, 7 us below one root,
/// and 8 us across.
Machine tree() {
  Machine machine{.name = "tree", .link = link(30, 30), .gpus_per_node = 8};
  machine.topology = std::make_shared<const Topology>(build_topology(pcie_tree()));
  machine.pair_peers = pair_peers_of(*machine.topology, 8, machine.link.peer);
  return machine;
}

/// Returns two nodes of four GPUs. GPUs 0 and 1 of a node share NIC 0, GPUs 2 and 3 NIC 1. All transfers of a NIC
/// together get 10, all between a leaf and the spine 15, one inside a node 100. Latency is 5 us.
Machine rails() {
  Machine machine = two_nodes();
  machine.nics_per_node = 2;
  machine.topology = std::make_shared<const Topology>(build_topology({.gpus_per_node = 4,
                                                                      .gpu_rate = gigabytes(200),
                                                                      .nodes = 2,
                                                                      .nics_per_node = 2,
                                                                      .nic_rate = gigabytes(20),
                                                                      .fabric = FabricKind::rails,
                                                                      .leaf_rate = gigabytes(30)}));
  return machine;
}

/// Returns six GPUs with a wire of 10 between any two; a GPU sends 24 to all others together and receives as much,
/// although its wires add up to 50. Latency is 5 us.
Machine mesh() {
  Machine machine{.name = "mesh", .link = link(10, 24), .gpus_per_node = 6};
  machine.link.peer.aggregate_rate.value = gigabytes(24);
  machine.topology = std::make_shared<const Topology>(
      build_topology({.kind = NodeKind::full_mesh, .gpus_per_node = 6, .gpu_rate = gigabytes(10)}));
  return machine;
}

void expect_ends(const Machine& machine, const std::vector<OneFlow>& flows, const Ends& expected,
                 std::int64_t tolerance_ps = 0) {
  const Ends ends = ends_of(flows, machine);
  ASSERT_EQ(ends.size(), expected.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    EXPECT_LE(std::abs((ends[i] - expected[i]).count()), tolerance_ps)
        << "flow " << i << " ends at " << ends[i].count() << " ps, not at " << expected[i].count();
  }
}

TEST(SharedWiresOfATree, OneFlowHasTheWireBetweenTheRoots) {
  // 8 + 3 MB / 10.
  expect_ends(tree(), {{0, 4, 3000}}, {308us});
}

TEST(SharedWiresOfATree, FlowsInOneDirectionShareTheWireBetweenTheRoots) {
  // 5 GB/s each: 8 + 3 MB / 5.
  expect_ends(tree(), {{0, 4, 3000}, {2, 6, 3000}}, {608us, 608us});
}

TEST(SharedWiresOfATree, FlowsInOppositeDirectionsShareNothing) {
  expect_ends(tree(), {{0, 4, 3000}, {4, 0, 3000}}, {308us, 308us});
  // Two flows share one direction; the third flow is alone in the other direction.
  expect_ends(tree(), {{0, 4, 3000}, {1, 5, 3000}, {6, 2, 3000}}, {608us, 608us, 308us});
}

TEST(SharedWiresOfATree, FlowsSpeedUpAsShorterOnesEnd) {
  // Flows share the 10 between the roots, after 8 us of latency:
  //   four have 2.5 for 600 us: the first has its 1.5 MB; 1.5, 3 and 4.5 MB are left
  //   three have 10/3 for 450 us; 1.5 and 3 MB are left
  //   two have 5 for 300 us; the last has 1.5 MB left, at 10 for 150 us
  // The wire is never idle: 15 MB / 10 = 1500 us.
  expect_ends(tree(), {{0, 4, 1500}, {1, 5, 3000}, {2, 6, 4500}, {3, 7, 6000}}, {608us, 1058us, 1358us, 1508us}, 1);
}

TEST(SharedWiresOfATree, AFlowBelowABridgeGetsWhatFlowsAboveItLeave) {
  // 0 -> 2 and 1 -> 3 have half of their bridge's 15 each: 7 + 3 MB / 7.5 = 407 us. 0 -> 1 is alone on GPU 0's wire of
  // 30 from 5 to 7 us, which is 60 kB, and then has 30 - 7.5 = 22.5: 7 + 5.94 MB / 22.5 = 271 us.
  expect_ends(tree(), {{0, 2, 3000}, {1, 3, 3000}, {0, 1, 6000}}, {407us, 407us, 271us});
}

TEST(SharedWiresOfATree, AFlowSlowsDownWhenAFlowOnOtherLinksEnds) {
  // 0 -> 4 shares the roots' 10 with 2 -> 6, and its bridge's 15 with 1 -> 3.
  //   7 to 8 us: 1 -> 3 alone at 15, 15 kB
  //   8 to 608 us: 5, 5, and 15 - 5 = 10 for 1 -> 3; 2 -> 6 has its 3 MB, 0 -> 4 has 3 MB left, 1 -> 3 has 1.5
  //   608 to 808 us: 0 -> 4 and 1 -> 3 share the bridge at 7.5; 1 -> 3 ends
  //   then 0 -> 4 has 1.5 MB left, at 10
  expect_ends(tree(), {{0, 4, 6000}, {2, 6, 3000}, {1, 3, 7515}}, {958us, 608us, 808us});
}

TEST(SharedWiresOfRails, GpusShareTheirNic) {
  // 5 GB/s each on NIC 0; 2 -> 6 has NIC 1 to itself. The same holds for the receivers' NICs: GPUs 0 and 2 both send to
  // NIC 0 of the other node.
  expect_ends(rails(), {{0, 4, 3000}, {1, 5, 3000}, {2, 6, 3000}}, {605us, 605us, 305us});
  expect_ends(rails(), {{0, 4, 3000}, {2, 5, 3000}}, {605us, 605us});
}

TEST(SharedWiresOfRails, OppositeDirectionsBetweenNodesShareNothing) {
  expect_ends(rails(), {{0, 4, 3000}, {4, 0, 3000}}, {305us, 305us});
  expect_ends(rails(), {{0, 4, 3000}, {1, 5, 3000}, {4, 0, 3000}, {5, 1, 3000}}, {605us, 605us, 605us, 605us});
}

TEST(SharedWiresOfRails, FlowsBetweenRailsShareTheUplinkOfTheirLeaf) {
  // 0 -> 6 and 4 -> 2 leave from different NICs, but both climb from leaf 0, which carries 15: 5 + 3 MB / 7.5.
  expect_ends(rails(), {{0, 6, 3000}, {4, 2, 3000}}, {405us, 405us});
  // On its own rail a flow does not climb.
  expect_ends(rails(), {{0, 4, 3000}, {6, 2, 3000}}, {305us, 305us});
}

TEST(SharedWiresOfRails, ABusyNicLeavesMoreOfTheUplinkToOthers) {
  //   5 to 305 us: 0 -> 6 and 1 -> 5 share NIC 0 at 5, so 4 -> 2 has 10 of the uplink's 15, all that its NIC carries;
  //     1 -> 5 has its 1.5 MB, 0 -> 6 has 1.5 MB left, 4 -> 2 has 3
  //   305 to 505 us: 0 -> 6 and 4 -> 2 share the uplink at 7.5; 0 -> 6 ends
  //   then 4 -> 2 has 1.5 MB left, at 10
  expect_ends(rails(), {{0, 6, 3000}, {1, 5, 1500}, {4, 2, 6000}}, {505us, 305us, 655us});
}

TEST(SharedWiresOfRails, FlowsInsideANodeDoNotShareWithThoseThatLeaveIt) {
  expect_ends(rails(), {{0, 1, 3000}, {0, 4, 3000}}, {35us, 305us});
}

TEST(SharedWiresOfAMesh, AGpuSendsLessThanTheSumOfItsWires) {
  // Two flows have a wire each. Three have 24 / 3 = 8 until the first ends after 300 us; then the others have their
  // wires' 10, with 1 and 2 MB left, and 4 of the 24 stay unused.
  expect_ends(mesh(), {{0, 1, 3000}, {0, 2, 3000}}, {305us, 305us});
  expect_ends(mesh(), {{0, 1, 2400}, {0, 2, 3400}, {0, 3, 4400}}, {305us, 405us, 505us});
}

TEST(SharedWiresOfAMesh, AFullReceiverLeavesBandwidthToItsSenders) {
  // Five GPUs send to GPU 5 at 24 / 5 = 4.8: 5 + 4.8 MB / 4.8. GPU 0 has 19.2 left for GPUs 1 and 2, 9.6 each: 0 -> 1
  // ends after 500 us, then 0 -> 2 has 4.8 MB left, at its wire's 10.
  expect_ends(mesh(),
              {{0, 5, 4800}, {1, 5, 4800}, {2, 5, 4800}, {3, 5, 4800}, {4, 5, 4800}, {0, 1, 4800}, {0, 2, 9600}},
              {1005us, 1005us, 1005us, 1005us, 1005us, 505us, 985us}, 1);
}

TEST(SharedWiresOfAMesh, SendingAndReceivingShareNothing) {
  expect_ends(mesh(), {{0, 1, 2400}, {0, 2, 2400}, {0, 3, 2400}, {1, 0, 2400}, {2, 0, 2400}, {3, 0, 2400}},
              Ends(6, Duration{305us}));
}

}  // namespace
}  // namespace commfuse::test
