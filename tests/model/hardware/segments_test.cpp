// SPDX-License-Identifier: Apache-2.0
// Tests which segments (directed wires) a transfer crosses, their numbers and their rates.
#include "model/hardware/segments.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "model/config/catalogue.h"
#include "model/hardware/machine.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::shipped_machine;

using Side = Segments::Side;

// A GPU, its bridge, the root, the other root, the other bridge, a GPU: five links and two ports.
TEST(Segments, GoUpToTheRootOfATreeAndDown) {
  const Topology topology = build_topology({.kind = NodeKind::pcie_tree,
                                            .gpus_per_node = 4,
                                            .gpu_rate = BytesPerSecond{25e9},
                                            .gpus_per_bridge = 2,
                                            .bridges_per_root = 1,
                                            .bridge_rate = {.value = BytesPerSecond{25e9}},
                                            .root_rate = Parameter<BytesPerSecond>{.value = BytesPerSecond{10e9}}});
  const Segments segments = segments_of(topology, 4);
  EXPECT_EQ(segments.of_fabric, 0);
  EXPECT_EQ(segments.links_of_a_node, 2 * 7);
  EXPECT_EQ(segments.of_a_node, 2 * 7 + 4 * 4);
  EXPECT_EQ(segments.way(0, 1).size(), 4U);
  EXPECT_EQ(segments.way(0, 3).size(), 7U);
  // The route back crosses the same links in the opposite direction.
  std::multiset<std::int32_t> forward;
  std::multiset<std::int32_t> back;
  for (const Segments::Crossing& crossing : segments.way(0, 3).subspan(1, 5)) {
    forward.insert(crossing.place ^ 1);
  }
  for (const Segments::Crossing& crossing : segments.way(3, 0).subspan(1, 5)) {
    back.insert(crossing.place);
  }
  EXPECT_EQ(forward, back);
}

TEST(Segments, AcrossNodesIncludeBothNodesAndTheFabric) {
  const Machine cluster = shipped_machine("clusters/dgx-h100-x2.yaml");
  const Segments& segments = *cluster.segments;
  const auto route = segments.way(3, 13);
  EXPECT_EQ(route.front().side, Side::sender);
  EXPECT_EQ(route.back().side, Side::receiver);
  EXPECT_EQ(segments.number(route.back(), 0, 1) - segments.kind(route.back()),
            static_cast<std::size_t>(segments.of_a_node));
  // All pairs of nodes share the same routes.
  EXPECT_EQ(segments.way(3, 13).data(), segments.way(11, 5).data());
}

TEST(SegmentRates, AreScaledToTheMeasuredRatesOfPairs) {
  Machine tree = shipped_machine("hardware/l40s-pcie.yaml");
  const std::vector<double> rates = segment_rates(*tree.segments, tree);
  const double slowest_pair = peer_between(tree, 0, 7).rate.value.value;
  double slowest_link = rates[0];
  for (std::int32_t link = 0; link < tree.segments->links_of_a_node; ++link) {
    slowest_link = std::min(slowest_link, rates[static_cast<std::size_t>(link)]);
  }
  EXPECT_DOUBLE_EQ(slowest_link, slowest_pair);  // The link between the roots is as fast as a pair that crosses it.
}

}  // namespace
}  // namespace commfuse
