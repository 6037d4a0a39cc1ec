// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/topology.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "tests/model/hardware/made_links.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

using test::gigabytes;

using Path = std::vector<int>;

/// Returns a topology whose first vertices are the GPUs.
Topology topology_with(int gpus, int vertices, std::vector<Edge> edges) {
  Topology topology{.gpus = gpus, .edges = std::move(edges)};
  topology.vertices.resize(static_cast<std::size_t>(vertices));
  return topology;
}

TEST(RouteBetween, SumsLatenciesAndKeepsTheSlowestRate) {
  // GPU 0 -1us- 2 -2us- 3 -3us- GPU 1, at 50, 20 and 40 GB/s.
  const Topology line =
      topology_with(2, 4, {{0, 2, gigabytes(50), 1us}, {2, 3, gigabytes(20), 2us}, {3, 1, gigabytes(40), 3us}});
  const std::optional<Route> route = route_between(line, 0, 1);
  ASSERT_TRUE(route);
  EXPECT_EQ(route->vertices, (Path{0, 2, 3, 1}));
  EXPECT_EQ(route->hops(), 3);
  EXPECT_EQ(route->latency, Duration{6us});
  EXPECT_EQ(route->rate, gigabytes(20));
  EXPECT_FALSE(route->crosses_nodes);
  EXPECT_EQ(route_between(line, 1, 0)->vertices, (Path{1, 3, 2, 0}));
}

TEST(RouteBetween, NamesTheLinkOfEveryHopAndItsDirection) {
  // Edge 0 is 0-2, edge 1 is 3-2, edge 2 is 3-1: the route from 0 to 1 crosses the second edge against its direction.
  const Topology line =
      topology_with(2, 4, {{0, 2, gigabytes(1), 1us}, {3, 2, gigabytes(1), 1us}, {3, 1, gigabytes(1), 1us}});
  EXPECT_EQ(route_between(line, 0, 1)->links, (Path{0, 3, 4}));
  EXPECT_EQ(route_between(line, 1, 0)->links, (Path{5, 2, 1}));
}

TEST(RouteBetween, PrefersLessLatencyAndThenFewerHops) {
  // The direct edge takes 5 us, the route over vertex 2 takes 2 + 2 us.
  const Topology detour =
      topology_with(2, 3, {{0, 1, gigabytes(90), 5us}, {0, 2, gigabytes(10), 2us}, {2, 1, gigabytes(10), 2us}});
  EXPECT_EQ(route_between(detour, 0, 1)->vertices, (Path{0, 2, 1}));
  // Both take 4 us; the direct edge has fewer hops.
  const Topology tie =
      topology_with(2, 3, {{0, 2, gigabytes(90), 2us}, {2, 1, gigabytes(90), 2us}, {0, 1, gigabytes(1), 4us}});
  EXPECT_EQ(route_between(tie, 0, 1)->vertices, (Path{0, 1}));
}

TEST(RouteBetween, AFullTieTakesTheLowestVertexInAnyOrderOfEdges) {
  std::vector<Edge> edges{{0, 4, gigabytes(1), 1us}, {4, 1, gigabytes(1), 1us}, {0, 2, gigabytes(1), 1us},
                          {2, 1, gigabytes(1), 1us}, {0, 3, gigabytes(1), 1us}, {3, 1, gigabytes(1), 1us}};
  for (std::size_t turn = 0; turn < edges.size(); ++turn) {
    std::rotate(edges.begin(), edges.begin() + 1, edges.end());
    EXPECT_EQ(route_between(topology_with(2, 5, edges), 0, 1)->vertices, (Path{0, 2, 1}));
    EXPECT_EQ(route_between(topology_with(2, 5, edges), 1, 0)->vertices, (Path{1, 2, 0}));
  }
}

TEST(RouteBetween, MayNotExist) {
  const Topology islands = topology_with(3, 4, {{0, 3, gigabytes(1), 1us}, {3, 2, gigabytes(1), 1us}});
  EXPECT_FALSE(route_between(islands, 0, 1).has_value());
  EXPECT_EQ(unreachable_gpu(islands), 1);
  const std::vector<std::optional<Route>> routes = routes_from(islands, 0);
  EXPECT_FALSE(routes[0]);
  EXPECT_FALSE(routes[1]);
  EXPECT_EQ(routes[2]->vertices, (Path{0, 3, 2}));
}

TEST(KnownRoutes, HaveTheLinksOfRoutesInAnyOrderOfQueries) {
  const auto tree = std::make_shared<const Topology>(build_topology(test::pcie_tree()));
  KnownRoutes known_routes(tree);
  EXPECT_EQ(&known_routes.topology(), tree.get());
  for (const int from : {3, 0, 3, 7, 1}) {
    for (int to = 7; to >= 0; --to) {
      if (to != from) {
        const std::span<const int> links = known_routes.links(from, to);
        EXPECT_EQ(Path(links.begin(), links.end()), route_between(*tree, from, to)->links) << from << ' ' << to;
      }
    }
  }
}

TEST(BuildTopology, AnNvswitchGivesAnyPairTwoHopsAtTheWholeRate) {
  const Topology topology = build_topology({.gpus_per_node = 8, .gpu_rate = gigabytes(450), .hop_latency = 300ns});
  EXPECT_EQ(topology.vertices.size(), 9u);
  EXPECT_EQ(topology.edges.size(), 8u);
  const Route route = *route_between(topology, 2, 7);
  EXPECT_EQ(route.vertices, (Path{2, 8, 7}));
  EXPECT_EQ(route.latency, Duration{600ns});
  EXPECT_EQ(route.rate, gigabytes(450));
}

TEST(BuildTopology, AMeshGivesAnyPairOneWire) {
  const Topology topology =
      build_topology({.kind = NodeKind::full_mesh, .gpus_per_node = 8, .gpu_rate = gigabytes(28), .hop_latency = 1us});
  EXPECT_EQ(topology.edges.size(), 28u);  // 8 x 7 / 2
  const Route route = *route_between(topology, 6, 1);
  EXPECT_EQ(route.hops(), 1);
  EXPECT_EQ(route.rate, gigabytes(28));
}

TEST(BuildTopology, OnARingRoutesTakeTheShorterWay) {
  const Topology topology =
      build_topology({.kind = NodeKind::ring, .gpus_per_node = 5, .gpu_rate = gigabytes(50), .hop_latency = 1us});
  EXPECT_EQ(topology.edges.size(), 5u);  // 0-1, 1-2, 2-3, 3-4, 4-0
  EXPECT_EQ(route_between(topology, 1, 2)->vertices, (Path{1, 2}));
  EXPECT_EQ(route_between(topology, 0, 2)->vertices, (Path{0, 1, 2}));
  EXPECT_EQ(route_between(topology, 0, 2)->links, (Path{0, 2}));
  EXPECT_EQ(route_between(topology, 0, 3)->vertices, (Path{0, 4, 3}));
  EXPECT_EQ(route_between(topology, 0, 3)->links, (Path{9, 7}));
  EXPECT_EQ(route_between(topology, 0, 3)->latency, Duration{2us});
  EXPECT_EQ(route_between(topology, 0, 3)->rate, gigabytes(50));
}

TEST(BuildTopology, ARingOfTwoGpusHasOneWireAndARingOfOneHasNone) {
  EXPECT_EQ(build_topology({.kind = NodeKind::ring, .gpus_per_node = 2}).edges.size(), 1u);
  EXPECT_EQ(build_topology({.kind = NodeKind::ring, .gpus_per_node = 1}).edges.size(), 0u);
}

TEST(BuildTopology, APcieTreeIsSlowerForPairsThatAreJoinedHigherUp) {
  // GPUs 0 and 1 share a bridge, 0 to 3 a root; GPU 4 is under the other root.
  const Topology topology = build_topology(test::pcie_tree());
  EXPECT_EQ(topology.vertices.size(), 8u + 4u + 2u);
  EXPECT_EQ(topology.edges.size(), 8u + 4u + 1u);
  const Route near_pair = *route_between(topology, 0, 1);
  EXPECT_EQ(near_pair.hops(), 2);
  EXPECT_EQ(near_pair.rate, gigabytes(60));
  const Route middle_pair = *route_between(topology, 0, 3);
  EXPECT_EQ(middle_pair.hops(), 4);  // GPU, bridge, root, bridge, GPU
  EXPECT_EQ(middle_pair.rate, gigabytes(30));
  const Route far_pair = *route_between(topology, 0, 4);
  EXPECT_EQ(far_pair.hops(), 5);  // The route also crosses the other root.
  EXPECT_EQ(far_pair.latency, Duration{5us});
  EXPECT_EQ(far_pair.rate, gigabytes(20));
}

TEST(BuildTopology, ATreeWhoseRootsAreNotJoinedLosesTheSecondHalf) {
  TopologyPlan plan = test::pcie_tree();
  plan.root_rate = std::nullopt;
  EXPECT_EQ(unreachable_gpu(build_topology(plan)), 4);
  plan.bridges_per_root = 4;  // All bridges share one root.
  EXPECT_EQ(unreachable_gpu(build_topology(plan)), std::nullopt);
}

TopologyPlan two_node_plan() {
  return {.gpus_per_node = 4,
          .gpu_rate = gigabytes(450),
          .hop_latency = 300ns,
          .nodes = 2,
          .nics_per_node = 4,
          .nic_rate = gigabytes(50),
          .nic_latency = 700ns};
}

TEST(BuildTopology, BetweenNodesARouteUsesBothNicsAndTheFabric) {
  const Topology topology = build_topology(two_node_plan());
  const Route route = *route_between(topology, 3, 4);
  EXPECT_TRUE(route.crosses_nodes);
  EXPECT_EQ(route.hops(), 4);
  EXPECT_EQ(route.latency, Duration{2800ns});
  EXPECT_EQ(route.rate, gigabytes(50));
  const auto kind = [&](int hop) {
    return topology.vertices[static_cast<std::size_t>(route.vertices[static_cast<std::size_t>(hop)])].kind;
  };
  EXPECT_EQ(kind(1), VertexKind::nic);
  EXPECT_EQ(kind(2), VertexKind::fabric);
  EXPECT_EQ(kind(3), VertexKind::nic);
  EXPECT_FALSE(route_between(topology, 0, 3)->crosses_nodes);
  EXPECT_EQ(route_between(topology, 0, 3)->hops(), 2);
}

TEST(BuildTopology, FewNicsAreSharedByNeighbours) {
  TopologyPlan plan = two_node_plan();
  plan.nics_per_node = 2;
  const Topology topology = build_topology(plan);
  const auto nic_of = [&](int gpu) { return route_between(topology, gpu, 7)->vertices[1]; };
  EXPECT_EQ(nic_of(0), nic_of(1));
  EXPECT_EQ(nic_of(2), nic_of(3));
  EXPECT_NE(nic_of(1), nic_of(2));
}

TEST(BuildTopology, RoutesInsideANodeNeverPassANic) {
  // Two GPUs per bridge, and a NIC for all four: two hops of 1 ns over the NIC, or four hops of 500 ns over the root.
  TopologyPlan plan{.kind = NodeKind::pcie_tree,
                    .gpus_per_node = 4,
                    .gpu_rate = gigabytes(60),
                    .hop_latency = 500ns,
                    .gpus_per_bridge = 2,
                    .bridges_per_root = 2,
                    .bridge_rate = {.value = gigabytes(30)}};
  plan.nodes = 2;
  plan.nics_per_node = 1;
  plan.nic_rate = gigabytes(10);
  plan.nic_latency = 1ns;
  const Topology topology = build_topology(plan);
  EXPECT_EQ(route_between(topology, 0, 2)->rate, gigabytes(30));
  EXPECT_EQ(route_between(topology, 0, 2)->hops(), 4);
  EXPECT_EQ(route_between(topology, 0, 6)->rate, gigabytes(10));
}

TEST(BuildTopology, NodesWithoutNicsDoNotReachEachOther) {
  TopologyPlan plan = two_node_plan();
  plan.nics_per_node = 0;
  EXPECT_EQ(unreachable_gpu(build_topology(plan)), 4);
}

std::vector<VertexKind> kinds_on(const Topology& topology, const Route& route) {
  std::vector<VertexKind> kinds;
  for (const int vertex : route.vertices) {
    kinds.push_back(topology.vertices[static_cast<std::size_t>(vertex)].kind);
  }
  return kinds;
}

using enum VertexKind;
using Kinds = std::vector<VertexKind>;

TopologyPlan on_rails() {
  TopologyPlan plan = two_node_plan();
  plan.fabric = FabricKind::rails;
  plan.leaf_rate = gigabytes(30);
  return plan;
}

TEST(BuildTopology, ARailJoinsCorrespondingGpusOfAllNodesAtOneLeaf) {
  const Topology topology = build_topology(on_rails());
  const Route route = *route_between(topology, 1, 5);
  EXPECT_EQ(kinds_on(topology, route), (Kinds{gpu, nic, leaf, nic, gpu}));
  EXPECT_EQ(route.rate, gigabytes(50));
  EXPECT_EQ(route.latency, Duration{2800ns});
}

TEST(BuildTopology, BetweenRailsARoutePassesTheSpineAtTheRateOfALeaf) {
  const Topology topology = build_topology(on_rails());
  const Route route = *route_between(topology, 1, 6);
  EXPECT_EQ(kinds_on(topology, route), (Kinds{gpu, nic, leaf, spine, leaf, nic, gpu}));
  EXPECT_EQ(route.rate, gigabytes(30));
  EXPECT_EQ(route.latency, Duration{4200ns});
  EXPECT_EQ(unreachable_gpu(topology), std::nullopt);
}

TEST(BuildTopology, NoGpuForwardsFromTheNetwork) {
  // GPU 4 has a wire to GPU 6 and shares a leaf with GPU 0: a path over GPU 4 is shorter, but not permitted.
  TopologyPlan plan = on_rails();
  plan.kind = NodeKind::full_mesh;
  const Topology topology = build_topology(plan);
  EXPECT_EQ(kinds_on(topology, *route_between(topology, 0, 6)), (Kinds{gpu, nic, leaf, spine, leaf, nic, gpu}));
}

TEST(BuildTopology, GpusThatShareANicShareItsRail) {
  TopologyPlan plan = on_rails();
  plan.nics_per_node = 2;
  const Topology topology = build_topology(plan);
  EXPECT_EQ(kinds_on(topology, *route_between(topology, 0, 5)), (Kinds{gpu, nic, leaf, nic, gpu}));
  EXPECT_EQ(route_between(topology, 0, 6)->hops(), 6);
}

TEST(BuildTopology, WiresOfAFileApplyToEveryNode) {
  // GPUs 0 and 1 are on a bridge; both use the second of two NICs.
  const TopologyPlan plan{.wires = NodeWires{.file = "",
                                             .gpus = 2,
                                             .others = {bridge},
                                             .edges = {{0, 2, gigabytes(20)}, {2, 1, gigabytes(10)}},
                                             .nic_of_gpu = {1, 1}},
                          .gpus_per_node = 2,
                          .hop_latency = 100ns,
                          .nodes = 2,
                          .nics_per_node = 2,
                          .nic_rate = gigabytes(50),
                          .nic_latency = 700ns};
  const Topology topology = build_topology(plan);
  // The vertices are 4 GPUs, the fabric, and for each node a bridge and two NICs.
  EXPECT_EQ(topology.vertices.size(), 4u + 1u + 2u * 3u);
  const Route inside = *route_between(topology, 3, 2);
  EXPECT_EQ(inside.vertices, (Path{3, 8, 2}));
  EXPECT_EQ(inside.rate, gigabytes(10));
  EXPECT_EQ(inside.latency, Duration{200ns});
  EXPECT_EQ(route_between(topology, 0, 2)->vertices, (Path{0, 7, 4, 10, 2}));
  EXPECT_EQ(route_between(topology, 1, 3)->vertices, (Path{1, 7, 4, 10, 3}));
}

TEST(NodeKind, NamesReadBack) {
  for (const NodeKind kind : {NodeKind::nvswitch, NodeKind::full_mesh, NodeKind::pcie_tree, NodeKind::ring}) {
    EXPECT_EQ(node_kind_named(name_of(kind)), kind);
  }
  EXPECT_EQ(node_kind_named("torus"), std::nullopt);
  for (const FabricKind kind : {FabricKind::one_switch, FabricKind::rails}) {
    EXPECT_EQ(fabric_kind_named(name_of(kind)), kind);
  }
  EXPECT_EQ(fabric_kind_named("dragonfly"), std::nullopt);
}

}  // namespace
}  // namespace commfuse
