// SPDX-License-Identifier: Apache-2.0
// Which layers a model has, in order: with attention, with an MLP, with a state space, or with two of them.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "model/workload/transformer.h"

namespace commfuse {

enum class MlpKind : std::uint8_t { none, dense, mixture };

/// What stands in a layer, each part behind a norm of its own.
struct LayerKind {
  bool attention = false;
  bool state_space = false;
  MlpKind mlp = MlpKind::none;

  [[nodiscard]] std::int64_t parts() const {
    return (attention ? 1 : 0) + (state_space ? 1 : 0) + (mlp == MlpKind::none ? 0 : 1);
  }
  friend auto operator<=>(const LayerKind&, const LayerKind&) = default;
};

inline constexpr LayerKind dense_layer{.attention = true, .mlp = MlpKind::dense};
inline constexpr LayerKind mixture_layer{.attention = true, .mlp = MlpKind::mixture};

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

}  // namespace commfuse
