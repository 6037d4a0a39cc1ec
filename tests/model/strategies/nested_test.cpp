// SPDX-License-Identifier: Apache-2.0
// Tests the positions of shards on nested rings, and the indices with two terms that describe them.
#include <gtest/gtest.h>

#include "model/proof/check_program.h"
#include "model/strategies/generate.h"
#include "model/strategies/scope.h"
#include "model/strategies/stage.h"

namespace commfuse {
namespace {

const Mesh two_nodes_of_three{{{"node", 2}, {"tp", 3}}};

TEST(Index, AddsTermsOnDifferentAxes) {
  const Index sum = along(two_nodes_of_three, 0, 1) * 30 + along(two_nodes_of_three, 1, -1) * 10 + 5;
  EXPECT_EQ(sum.at(two_nodes_of_three, {0, 0}), 30 + 20 + 5);
  EXPECT_EQ(sum.at(two_nodes_of_three, {1, 1}), 0 + 0 + 5);
  EXPECT_DEATH(static_cast<void>(along(two_nodes_of_three, 0) + along(two_nodes_of_three, 0)),
               "an index has one term per axis");
}

TEST(ShardAxes, NumberRanksAsTheMeshDoes) {
  const ShardAxes nested{.inner = 1, .outer = 0};
  EXPECT_EQ(nested.ranks(two_nodes_of_three), 6);
  for (Rank rank = 0; rank < 6; ++rank) {
    const Coordinates coordinates = two_nodes_of_three.coordinates(rank);
    EXPECT_EQ(nested.place(two_nodes_of_three).at(two_nodes_of_three, coordinates), rank);
    EXPECT_EQ((nested.place(two_nodes_of_three) * 4).at(two_nodes_of_three, coordinates), 4 * rank);
    // The position of the previous rank of the node, but in the next node.
    EXPECT_EQ(nested.place(two_nodes_of_three, {.inner = -1, .outer = 1}).at(two_nodes_of_three, coordinates),
              (coordinates[0] + 1) % 2 * 3 + (coordinates[1] + 2) % 3);
  }
}

TEST(ShardAxes, RepeatAlongTheOtherAxisOfAFlatRing) {
  const ShardAxes flat{.inner = 0, .outer = {}};
  EXPECT_EQ(flat.ranks(two_nodes_of_three), 2);
  EXPECT_EQ(flat.place(two_nodes_of_three), along(two_nodes_of_three, 0));
}

TEST(NestedRings, AreProvedForNodesOfAllSizes) {
  for (const Scope scope : all_scopes) {
    if (!applies(commfuse_strategy, kinds_of(scope))) {
      continue;
    }
    for (const auto& [nodes, inner] : {std::pair{2, 2}, {3, 2}, {2, 3}, {5, 3}, {4, 4}, {2, 8}}) {
      for (const LaneKind add_lane : {LaneKind::compute, LaneKind::aux}) {
        const Program program = generate(operation_of(scope, true), nodes * inner, commfuse_strategy,
                                         {.add_lane = add_lane, .inner = inner});
        EXPECT_TRUE(check_program(program).ok()) << program.name << ", " << nodes << " nodes";
      }
    }
  }
}

TEST(NestedRings, HaveAnAllGatherPerRingForAnAllReduce) {
  const std::vector<SiteKind> kinds = kinds_of(Scope::down_ar);
  const StrategyOptions nested = canonical(commfuse_strategy, kinds, {.inner = 4}, 8);
  EXPECT_EQ(nested.inner, 4);
  const Program program = generate(operation_of(Scope::down_ar, true), 8, commfuse_strategy, nested);
  std::vector<int> axes;
  for (const Op& op : program.ops) {
    if (const auto* gather = std::get_if<CollectiveShape>(&program.shapes[op.shape])) {
      axes.push_back(gather->axis);
    }
  }
  EXPECT_EQ(axes, (std::vector{1, 0}));  // inside each node, then between nodes
}

TEST(NestedRings, ExistInTheRingFormOnly) {
  const Program program =
      generate(operation_of(Scope::qkv, true), 8, commfuse_strategy, {.form = Form::direct, .inner = 4});
  EXPECT_EQ(program.mesh, (Mesh{{{"tp", 8}}}));
  EXPECT_EQ(generate(operation_of(Scope::qkv, true), 8, sliced_strategy, {.inner = 4}).mesh.axes.size(), 1U);
}

}  // namespace
}  // namespace commfuse
