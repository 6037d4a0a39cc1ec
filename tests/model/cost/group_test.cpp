// SPDX-License-Identifier: Apache-2.0
#include "model/cost/group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/config/catalogue.h"
#include "tests/model/hardware/made_links.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

using test::gigabytes;
using test::link;

/// Returns two nodes of four GPUs, with a NIC of 10 GB/s for each GPU and 200 GB/s inside a node for a collective.
Machine two_nodes_with_groups() {
  Machine machine = test::two_nodes();
  machine.nics_per_node = 4;
  machine.network_groups = std::make_shared<const std::vector<CollectiveParameters>>(
      std::vector<CollectiveParameters>{link(1, 10).collective, link(1, 20).collective, link(1, 30).collective});
  return machine;
}

Machine loaded(const std::string& name) { return load_machine(name); }

TEST(Group, AllToAllAcrossNodesUsesTheNics) {
  // Each of eight ranks sends half of its 80 MB to the other node through its NIC: 10 us + 40 MB / 10 GB/s. Meanwhile
  // 30 MB go to the three other GPUs of its node: 10 us + 150 us.
  const Machine machine = two_nodes_with_groups();
  EXPECT_EQ(group_of(machine, {1, 8}).all_to_all(Bytes{80'000'000}), Duration{4010us});
  // A pair across two nodes sends half of its 80 MB.
  EXPECT_EQ(group_of(machine, {4, 2}).all_to_all(Bytes{80'000'000}), Duration{4010us});
  EXPECT_EQ(group_of(machine, {1, 4}).all_to_all(Bytes{80'000'000}), Duration{310us});
}

TEST(Group, AllToAllIsNoFasterThanItsNics) {
  // Half of 80 MB leave each of the eight ranks: 4 ms at 10 GB/s, although the file's rate of 100 GB/s would give less.
  Machine machine = two_nodes_with_groups();
  machine.network->capacity = gigabytes(10);
  AllToAllParameters direct;
  direct.large.rate.value = gigabytes(100);
  direct.large.own_copy_rate.value = BytesPerSecond{1e30};
  machine.network->collective.all_to_all = std::make_shared<const AllToAllParameters>(direct);
  EXPECT_EQ(group_of(machine, {1, 8}).all_to_all(Bytes{80'000'000}), Duration{4000us});
}

TEST(Group, AcrossNodesWaitsForTheNodeThatUsesTheFewestNics) {
  const Machine machine = two_nodes_with_groups();
  const auto rate = [&](std::int64_t ranks) { return group_of(machine, {1, ranks}).wires->rate.value.value; };
  EXPECT_EQ(rate(5), 10e9);
  EXPECT_EQ(rate(6), 20e9);
  EXPECT_EQ(rate(7), 30e9);
  EXPECT_EQ(rate(8), 40e9);
  // The fifth rank sends 10 of its 50 MB to each of the four in the other node, all through one NIC.
  EXPECT_EQ(group_of(machine, {1, 5}).all_to_all(Bytes{50'000'000}), Duration{4010us});
}

TEST(Group, IsAsSlowAsTheSlowestSimilarGroup) {
  const Machine machine = two_nodes_with_groups();
  // Ranks 0 to 2 are in one node; of ranks 3 to 5, one is in the same node and two are in the next.
  EXPECT_EQ(group_of(machine, {1, 3, 3}).nodes, 1);
  EXPECT_EQ(group_of(machine, {1, 3, 6}).nodes, 2);
  EXPECT_EQ(group_of(machine, {1, 3, 6}).wires->rate.value.value, 10e9);
  EXPECT_EQ(group_of(machine, {1, 4, 8}).nodes, 1);
  // The groups are {0, 3}, {1, 4} and {2, 5}.
  EXPECT_EQ(group_of(machine, {3, 2, 6}).nodes, 2);
  EXPECT_EQ(group_of(machine, {3, 2, 6}).wires->rate.value.value, 10e9);
}

TEST(Group, IsPlacedAsQuicklyForABillionRanksAsForEight) {
  Machine machine = two_nodes_with_groups();
  machine.nodes = 1 << 28;
  const std::int64_t largest = std::int64_t{1} << 30;
  EXPECT_EQ(group_of(machine, {1, largest}).nodes, 1 << 28);
  EXPECT_EQ(group_of(machine, {2, largest / 2}).nodes, 1 << 28);
  EXPECT_EQ(group_of(machine, {8, largest / 8}).nodes, 1 << 27);
  EXPECT_EQ(group_of(machine, {1, largest - 3}).wires->rate.value.value, 10e9);  // The last node has one rank.
  EXPECT_EQ(group_of(machine, {3, largest / 3}).nodes, (1 << 28));               // Every node has one or two members.
  EXPECT_EQ(group_of(machine, {6, largest / 6}).nodes, 178'956'970);             // Each node has at most one member.
  EXPECT_EQ(group_of(machine, {1, 357'913'941, 1'073'741'823}).nodes, 89'478'486);
}

/// Counts members to find the group that has the fewest members on one of its nodes, and among such groups the one on
/// the most nodes. Returns the number of its nodes.
int counted_nodes(int per_node, int stride, int ranks) {
  std::pair<int, int> worst{per_node + 1, 0};
  for (int first = 0; first < stride; ++first) {
    std::map<int, int> members;
    for (int i = 0; i < ranks; ++i) {
      ++members[(first + i * stride) / per_node];
    }
    const auto fewest = std::min_element(members.begin(), members.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (members.size() > 1) {
      worst = std::min(worst, {fewest->second, -static_cast<int>(members.size())});
    }
  }
  return std::max(1, -worst.second);
}

TEST(Group, HasTheNodesFoundByCountingAllMembers) {
  for (const int per_node : {3, 4, 6, 8}) {
    Machine machine = two_nodes_with_groups();
    machine.gpus_per_node = per_node;
    machine.nodes = 40;
    machine.network_groups = nullptr;
    for (int stride = 1; stride <= 9; ++stride) {
      for (int ranks = 2; stride * ranks <= per_node * machine.nodes; ++ranks) {
        EXPECT_EQ(group_of(machine, {stride, ranks}).nodes, counted_nodes(per_node, stride, ranks))
            << per_node << " " << stride << " " << ranks;
      }
    }
  }
}

TEST(Group, AllToAllAcrossNodesWaitsForSlowLinksInsideToo) {
  Machine machine = two_nodes_with_groups();
  machine.link.collective.rate.value = gigabytes(1);
  EXPECT_EQ(group_of(machine, {1, 8}).all_to_all(Bytes{80'000'000}), Duration{30'010us});
}

TEST(Group, NoAllToAllOfTheCatalogueExceedsItsNics) {
  for (const char* name : {"dgx-h100-x2", "dgx-a100-x2", "a100-roce-x2", "gke-a4-x2", "mi300x-x2", "gh200-slingshot-x2",
                           "a100-100g-x2", "azure-nc96ads-x2", "gb200-nvl72-x2"}) {
    const Machine machine = loaded(name);
    const int gpus = total_gpus(machine);
    const Bytes total{std::int64_t{1} << 30};
    const double out = static_cast<double>(total.count) / 2.0 * machine.gpus_per_node;  // bytes that leave a node
    const double nics = machine.network->nominal_rate.value.value * machine.nics_per_node;
    EXPECT_GE(to_seconds(group_of(machine, {1, gpus}).all_to_all(total)), out / nics) << name;
  }
}

// Each of the four GPUs of a node forms a group with the corresponding GPU of the other node, so four groups share the
// NICs.
TEST(Group, SharesTheNicsWithOtherGroupsOnItsNodes) {
  Machine machine = two_nodes_with_groups();
  machine.network->collective.rate.value = gigabytes(40);
  const auto rate = [&](int nics, std::int64_t stride, std::int64_t ranks) {
    machine.nics_per_node = nics;
    auto single_group = machine.network->collective;  // This is how a file without rates for groups is read.
    single_group.rate.value.value *= share_of_nics({1, 1}, {4, nics});
    machine.network_groups = std::make_shared<const std::vector<CollectiveParameters>>(3, single_group);
    return group_of(machine, {stride, ranks, 8}).wires->rate.value.value;
  };
  for (const int nics : {1, 2, 4}) {
    EXPECT_DOUBLE_EQ(rate(nics, 4, 2), 10e9) << nics;  // a quarter of the node's rate, for any number of NICs
    EXPECT_DOUBLE_EQ(rate(nics, 1, 8), 40e9) << nics;
  }
}

TEST(Group, InsideAMeshUsesItsOwnWires) {
  const Machine machine = loaded("mi300x");
  const double node_rate = machine.link.collective.rate.value.value;
  EXPECT_DOUBLE_EQ(group_of(machine, {1, 2}).wires->rate.value.value, node_rate / 7.0);
  EXPECT_DOUBLE_EQ(group_of(machine, {4, 2}).wires->rate.value.value, node_rate / 7.0);
  EXPECT_DOUBLE_EQ(group_of(machine, {2, 4}).wires->rate.value.value, node_rate * 3.0 / 7.0);
  EXPECT_EQ(group_of(machine, {1, 8}).wires->rate.value.value, node_rate);
}

TEST(Group, FarApartInAPcieTreeIsSlowerThanNeighbours) {
  const Machine machine = loaded("h100-nvl");
  const Bytes total{std::int64_t{1} << 28};
  EXPECT_GT(group_of(machine, {2, 2}).all_gather(total), 2 * group_of(machine, {1, 2}).all_gather(total));
}

TEST(Group, AcrossNodesOfAMeshHasNoMoreThanItsWiresInside) {
  const Machine machine = loaded("mi300x-x2");
  const double inside = machine.link.collective.rate.value.value;
  const double across = machine.network->collective.rate.value.value;
  EXPECT_LE(group_of(machine, {4, 4}).wires->rate.value.value, std::max(inside, across) / 7.0 * 1.0001);
}

TEST(Group, MultipliesItsTimesByTheStretch) {
  const Machine machine = two_nodes_with_groups();
  Group group = group_of(machine, {1, 4});
  group.stretch = 1.5;
  EXPECT_EQ(group.all_gather(Bytes{80'000'000}), Duration{465us});
  EXPECT_EQ(group.reduce_scatter(Bytes{80'000'000}), Duration{465us});
}

TEST(Group, OnAnAxisHasTheStrideOfTheLaterAxes) {
  const Machine machine = two_nodes_with_groups();
  Mesh mesh;
  mesh.axes = {{"data", 2}, {"tensor", 4}};
  EXPECT_EQ(group_on_axis(mesh, 0, machine).nodes, 2);
  EXPECT_EQ(group_on_axis(mesh, 1, machine).nodes, 1);
}

}  // namespace
}  // namespace commfuse
