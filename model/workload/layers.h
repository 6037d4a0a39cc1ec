// SPDX-License-Identifier: Apache-2.0
// Layers of a model, in order. Each has one or more of these parts: attention, a state space, an MLP.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/workload/transformer.h"

namespace commfuse {

/// Letters for kinds of layers. The letters of Megatron-LM's --hybrid-override-pattern denote layers with one part: M
/// state space, * attention, - MLP, E experts. This project adds letters for layers with two parts: m (state space) and
/// a (attention), each followed by experts, or by an MLP in a model without experts.
inline constexpr std::string_view layer_letters = "M*-Ema";
/// Returns the kinds of layers that the letters denote, in order. Requires every letter to be one of `layer_letters`.
std::vector<LayerKind> kinds_of_letters(std::string_view letters, bool has_experts);

/// Sets the kinds of a model's layers; leaves them empty if all layers have the model's default kind.
void put_kinds(std::vector<LayerKind> kinds, Transformer& model);

/// Consecutive layers of one kind.
struct LayerRun {
  LayerKind kind;
  std::int64_t count = 0;
};

/// Returns the runs of `count` layers starting at `first`. Requires them to be layers of the model.
std::vector<LayerRun> layer_runs(const Transformer& model, std::int64_t first, std::int64_t count);
std::vector<LayerRun> layer_runs(const Transformer& model);

/// Number of layers with each part.
struct LayerCounts {
  std::int64_t attention = 0;
  std::int64_t state_space = 0;
  std::int64_t dense = 0;
  std::int64_t mixture = 0;
};
LayerCounts layer_counts(const Transformer& model);

/// Returns the first kind of layer with attention; dense_layer if the model has none.
LayerKind first_attending(const Transformer& model);

/// Returns the approximate number of keys that a query of this kind of layer sees on average over a sequence of `seq`
/// tokens under a causal mask: seq / 2 without a window, w - w^2 / (2 seq) with a window w, half a chunk with chunks.
/// With an indexer, the result is at most that of a window of as many keys as the indexer selects.
double mean_keys(const Transformer& model, const LayerKind& kind, std::int64_t seq);
/// Returns how many keys the last of `seq` tokens sees, including its own.
std::int64_t last_keys(const Transformer& model, const LayerKind& kind, std::int64_t seq);
/// Returns how many of `seq` tokens a cache has to keep.
std::int64_t kept_keys(const LayerKind& kind, std::int64_t seq);

}  // namespace commfuse
