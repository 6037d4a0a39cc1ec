// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/group_rates.h"

#include <gtest/gtest.h>

#include "tests/model/hardware/made_links.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

using test::gigabytes;

GroupRates rates_of(NodeKind kind, int gpus, double wire) {
  return {build_topology({.kind = kind, .gpus_per_node = gpus, .gpu_rate = gigabytes(wire), .hop_latency = 1us}), gpus};
}

double gb(BytesPerSecond rate) { return rate.value / 1e9; }

GroupRates tree() { return {build_topology(test::pcie_tree()), 8}; }

TEST(GroupRates, OnASwitchEveryGroupHasTheWholeRate) {
  const GroupRates rates = rates_of(NodeKind::nvswitch, 8, 450);
  for (int ranks = 2; ranks <= 8; ++ranks) {
    EXPECT_DOUBLE_EQ(gb(rates.alone(ranks)), 450.0) << ranks;
  }
  EXPECT_DOUBLE_EQ(gb(rates.together({2, 4})), 450.0);
  EXPECT_TRUE(StridedRates(rates, 8).alike());
}

TEST(GroupRates, OnAMeshAGroupHasTheWiresBetweenItsOwnGpus) {
  const GroupRates rates = rates_of(NodeKind::full_mesh, 8, 64);
  for (int ranks = 2; ranks <= 8; ++ranks) {
    EXPECT_DOUBLE_EQ(gb(rates.alone(ranks)), 64.0 * (ranks - 1)) << ranks;
  }
  EXPECT_DOUBLE_EQ(gb(rates.together({4, 2})), 64.0);  // four pairs, each with its own wire
  EXPECT_DOUBLE_EQ(StridedRates(rates, 8).of_whole({2, 4}), 3.0 / 7.0);
}

TEST(GroupRates, AGroupThatDoesNotCloseTheRingUsesOneDirection) {
  const GroupRates rates = rates_of(NodeKind::ring, 8, 100);
  EXPECT_DOUBLE_EQ(gb(rates.alone(8)), 200.0);
  EXPECT_DOUBLE_EQ(gb(rates.alone(2)), 100.0);
  EXPECT_DOUBLE_EQ(gb(rates.alone(4)), 100.0);
}

TEST(GroupRates, OnATreeTheSlowestWireBetweenNeighboursSetsTheRate) {
  EXPECT_DOUBLE_EQ(gb(tree().alone(2)), 60.0);
  EXPECT_DOUBLE_EQ(gb(tree().alone(3)), 30.0);
  EXPECT_DOUBLE_EQ(gb(tree().alone(4)), 30.0);
  EXPECT_DOUBLE_EQ(gb(tree().alone(5)), 20.0);
  EXPECT_DOUBLE_EQ(gb(tree().alone(8)), 20.0);
}

TEST(GroupRates, InterleavedGroupsInATreeShareCommonWires) {
  // Groups {0, 2} and {1, 3} both leave through the first bridge. Four pairs {0, 4} to {3, 7} all pass between the
  // roots.
  EXPECT_DOUBLE_EQ(gb(tree().together({2, 2})), 15.0);
  EXPECT_DOUBLE_EQ(gb(tree().together({4, 2})), 5.0);
  EXPECT_DOUBLE_EQ(gb(tree().together({1, 2})), 60.0);
  EXPECT_DOUBLE_EQ(StridedRates(tree(), 8).of_whole({4, 2}), 0.25);
}

TEST(GroupRates, IgnoreRoundingDifferences) {
  EXPECT_EQ(part_of({1.0 + 1e-12}, {1.0}), 1.0);
  EXPECT_EQ(part_of({1.0}, {3.0}), 1.0 / 3.0);
}

TEST(GroupRatesDeathTest, AGroupFitsItsNode) {
  EXPECT_DEATH((void)tree().alone(9), "a node has these GPUs");
  EXPECT_DEATH((void)tree().together({4, 3}), "a node has these GPUs");
}

}  // namespace
}  // namespace commfuse
