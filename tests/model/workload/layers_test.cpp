// SPDX-License-Identifier: Apache-2.0
#include "model/workload/layers.h"

#include <gtest/gtest.h>

namespace commfuse {
namespace {

TEST(LayerRuns, of_a_dense_model_are_one) {
  const std::vector<LayerRun> runs = layer_runs({.layers = 12});
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs.front().kind, dense_layer);
  EXPECT_EQ(runs.front().count, 12);
}

TEST(LayerRuns, of_experts_begin_with_the_dense_ones) {
  const Transformer model{.layers = 6, .experts = Experts{.count = 8, .active = 2, .ffn = 64, .dense_layers = 2}};
  const std::vector<LayerRun> runs = layer_runs(model, 1, 4);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].kind, dense_layer);
  EXPECT_EQ(runs[0].count, 1);
  EXPECT_EQ(runs[1].kind, mixture_layer);
  EXPECT_EQ(runs[1].count, 3);
}

TEST(LayerRuns, of_a_hybrid_follow_its_letters) {
  const Transformer model{.layers = 5, .state_space = StateSpace{.pattern = "MM-*E"}};
  const std::vector<LayerRun> runs = layer_runs(model);
  ASSERT_EQ(runs.size(), 4U);
  EXPECT_EQ(runs[0].kind, LayerKind{.state_space = true});
  EXPECT_EQ(runs[0].count, 2);
  EXPECT_EQ(runs[1].kind, LayerKind{.mlp = MlpKind::dense});
  EXPECT_EQ(runs[2].kind, LayerKind{.attention = true});
  EXPECT_EQ(runs[3].kind, LayerKind{.mlp = MlpKind::mixture});
  EXPECT_EQ(layer_runs(model, 2, 2).front().kind, LayerKind{.mlp = MlpKind::dense});
}

TEST(LayerCounts, count_parts) {
  const LayerCounts counts = layer_counts({.layers = 7, .state_space = StateSpace{.pattern = "M-M-*-M"}});
  EXPECT_EQ(counts.state_space, 3);
  EXPECT_EQ(counts.dense, 3);
  EXPECT_EQ(counts.attention, 1);
  EXPECT_EQ(counts.mixture, 0);
}

}  // namespace
}  // namespace commfuse
