// SPDX-License-Identifier: Apache-2.0
#include "model/workload/layers.h"

#include <gtest/gtest.h>

namespace commfuse {
namespace {

TEST(LayerRuns, AreASingleRunForADenseModel) {
  const std::vector<LayerRun> runs = layer_runs({.layers = 12});
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs.front().kind, dense_layer);
  EXPECT_EQ(runs.front().count, 12);
}

TEST(LayerRuns, BeginWithTheDenseLayersOfAMixture) {
  const Transformer model{
      .layers = 6,
      .experts = Experts{.count = 8, .active = 2, .ffn = 64},
      .kinds = {dense_layer, dense_layer, mixture_layer, mixture_layer, mixture_layer, mixture_layer}};
  const std::vector<LayerRun> runs = layer_runs(model, 1, 4);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].kind, dense_layer);
  EXPECT_EQ(runs[0].count, 1);
  EXPECT_EQ(runs[1].kind, mixture_layer);
  EXPECT_EQ(runs[1].count, 3);
}

TEST(LayerRuns, FollowTheLettersOfAHybrid) {
  const Transformer model{.layers = 5, .kinds = kinds_of_letters("MM-*E", true)};
  const std::vector<LayerRun> runs = layer_runs(model);
  ASSERT_EQ(runs.size(), 4U);
  EXPECT_EQ(runs[0].kind, LayerKind{.state_space = true});
  EXPECT_EQ(runs[0].count, 2);
  EXPECT_EQ(runs[1].kind, LayerKind{.mlp = MlpKind::dense});
  EXPECT_EQ(runs[2].kind, LayerKind{.attention = true});
  EXPECT_EQ(runs[3].kind, LayerKind{.mlp = MlpKind::mixture});
  EXPECT_EQ(layer_runs(model, 2, 2).front().kind, LayerKind{.mlp = MlpKind::dense});
}

TEST(LayerCounts, CountParts) {
  const LayerCounts counts = layer_counts({.layers = 7, .kinds = kinds_of_letters("M-M-*-M", false)});
  EXPECT_EQ(counts.state_space, 3);
  EXPECT_EQ(counts.dense, 3);
  EXPECT_EQ(counts.attention, 1);
  EXPECT_EQ(counts.mixture, 0);
}

TEST(LayerKinds, DropKindsThatAreTheDefault) {
  Transformer model{.layers = 2};
  put_kinds({dense_layer, dense_layer}, model);
  EXPECT_TRUE(model.kinds.empty());
  put_kinds({dense_layer, {.attention = true, .mlp = MlpKind::dense, .window = 16}}, model);
  EXPECT_EQ(model.kinds.size(), 2U);
}

TEST(KeysSeen, AreTheKeysInTheWindow) {
  const Transformer model;
  const LayerKind whole = dense_layer;
  LayerKind sliding = dense_layer;
  sliding.window = 1024;
  LayerKind chunked = sliding;
  chunked.chunked = true;
  EXPECT_EQ(mean_keys(model, whole, 4096), 2048.0);
  EXPECT_EQ(mean_keys(model, sliding, 4096),
            1024.0 - 128.0);  // The first 1024 queries see half of the window on average.
  EXPECT_EQ(mean_keys(model, chunked, 4096), 512.0);
  EXPECT_EQ(mean_keys(model, chunked, 1536), (1024.0 * 1024.0 + 512.0 * 512.0) / 2.0 / 1536.0);
  EXPECT_EQ(mean_keys(model, sliding, 512), 256.0);  // The sequence is shorter than the window.
  EXPECT_EQ(mean_keys(model, chunked, 512), 256.0);
  EXPECT_EQ(last_keys(model, whole, 4096), 4096);
  EXPECT_EQ(last_keys(model, sliding, 4096), 1024);
  EXPECT_EQ(last_keys(model, chunked, 4096), 1024);
  EXPECT_EQ(last_keys(model, chunked, 4097), 1);  // The last query is the first of its chunk.
  EXPECT_EQ(kept_keys(sliding, 4096), 1024);
  EXPECT_EQ(kept_keys(whole, 4096), 4096);
}

TEST(KeysSeen, AreAtMostTheKeysThatAnIndexerChooses) {
  Transformer model;
  model.latent = LatentAttention{.indexer = Indexer{.heads = 64, .head_dim = 128, .keys = 2048}};
  EXPECT_EQ(mean_keys(model, dense_layer, 8192), 2048.0 - 256.0);
  EXPECT_EQ(mean_keys(model, dense_layer, 1024), 512.0);
  EXPECT_EQ(last_keys(model, dense_layer, 100'000), 2048);
  EXPECT_EQ(kept_keys(dense_layer, 100'000), 100'000);
}

}  // namespace
}  // namespace commfuse
