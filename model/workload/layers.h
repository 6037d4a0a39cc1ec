// SPDX-License-Identifier: Apache-2.0
// Which layers a model has, in order: with attention, with an MLP, with a state space, or with two of them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/workload/transformer.h"

namespace commfuse {

/// Kinds as letters, as Megatron-LM's --hybrid-override-pattern: M state space, * attention, - MLP, E experts, each a
/// layer of its own. And of ours: m, a state space, and a, attention, with experts behind, or an MLP in a model
/// without.
inline constexpr std::string_view layer_letters = "M*-Ema";
/// Requires such letters.
std::vector<LayerKind> kinds_of_letters(std::string_view letters, bool has_experts);

/// Gives the layers of a model kinds, or none where these are what it has anyway.
void put_kinds(std::vector<LayerKind> kinds, Transformer& model);

/// Layers of one kind, one behind the other.
struct LayerRun {
  LayerKind kind;
  std::int64_t count = 0;
};

/// Of `count` layers from the first-th on. Requires them to be layers of the model.
std::vector<LayerRun> layer_runs(const Transformer& model, std::int64_t first, std::int64_t count);
std::vector<LayerRun> layer_runs(const Transformer& model);

/// Layers that have such a part.
struct LayerCounts {
  std::int64_t attention = 0;
  std::int64_t state_space = 0;
  std::int64_t dense = 0;
  std::int64_t mixture = 0;
};
LayerCounts layer_counts(const Transformer& model);

/// The first kind of layer with attention; dense_layer where the model has none.
LayerKind first_attending(const Transformer& model);

/// How many keys a query of such a layer sees in the mean over a sequence of `seq` tokens behind a causal mask, about:
/// seq / 2; w - w^2 / (2 seq) of a window w; half a chunk. With an indexer at most as many as it chooses.
double mean_keys(const Transformer& model, const LayerKind& kind, std::int64_t seq);
/// How many the last of `seq` tokens sees, itself among them.
std::int64_t last_keys(const Transformer& model, const LayerKind& kind, std::int64_t seq);
/// How many of `seq` tokens a cache has to keep.
std::int64_t kept_keys(const LayerKind& kind, std::int64_t seq);

}  // namespace commfuse
