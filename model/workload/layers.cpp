// SPDX-License-Identifier: Apache-2.0
#include "model/workload/layers.h"

#include <algorithm>

#include "model/check.h"

namespace commfuse {

namespace {

LayerKind kind_of(char letter) {
  switch (letter) {
    case StateSpace::mamba: return {.state_space = true};
    case StateSpace::attention: return {.attention = true};
    case StateSpace::experts: return {.mlp = MlpKind::mixture};
    default: return {.mlp = MlpKind::dense};
  }
}

}  // namespace

std::vector<LayerRun> layer_runs(const Transformer& model, std::int64_t first, std::int64_t count) {
  check(first >= 0 && count >= 0 && first + count <= model.layers, "layers are those of the model");
  std::vector<LayerRun> runs;
  const auto add = [&](LayerKind kind, std::int64_t layers) {
    if (layers > 0 && !runs.empty() && runs.back().kind == kind) {
      runs.back().count += layers;
    } else if (layers > 0) {
      runs.push_back({kind, layers});
    }
  };
  if (!model.state_space) {
    const std::int64_t dense_in_all = model.experts ? model.experts->dense_layers : model.layers;
    const std::int64_t dense = std::clamp<std::int64_t>(dense_in_all - first, 0, count);
    add(dense_layer, dense);
    add(mixture_layer, count - dense);
    return runs;
  }
  for (std::int64_t layer = first; layer < first + count; ++layer) {
    add(kind_of(model.state_space->pattern[static_cast<std::size_t>(layer)]), 1);
  }
  return runs;
}

std::vector<LayerRun> layer_runs(const Transformer& model) { return layer_runs(model, 0, model.layers); }

LayerCounts layer_counts(const Transformer& model) {
  LayerCounts counts;
  for (const LayerRun& run : layer_runs(model)) {
    counts.attention += run.kind.attention ? run.count : 0;
    counts.state_space += run.kind.state_space ? run.count : 0;
    counts.dense += run.kind.mlp == MlpKind::dense ? run.count : 0;
    counts.mixture += run.kind.mlp == MlpKind::mixture ? run.count : 0;
  }
  return counts;
}

}  // namespace commfuse
