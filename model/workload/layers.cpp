// SPDX-License-Identifier: Apache-2.0
#include "model/workload/layers.h"

#include <algorithm>
#include <utility>

#include "model/check.h"

namespace commfuse {

Transformer shape_of(const Transformer& model, const LayerKind& kind) {
  Transformer shape = model;
  shape.kinds = {};
  shape.ffn = kind.ffn > 0 ? kind.ffn : model.ffn;
  shape.kv_heads = kind.kv_heads > 0 ? kind.kv_heads : model.kv_heads;
  return shape;
}

namespace {

LayerKind kind_of_letter(char letter, bool has_experts) {
  const MlpKind mlp = has_experts ? MlpKind::mixture : MlpKind::dense;
  switch (letter) {
    case 'M': return {.state_space = true};
    case '*': return {.attention = true};
    case 'E': return {.mlp = MlpKind::mixture};
    case 'm': return {.state_space = true, .mlp = mlp};
    case 'a': return {.attention = true, .mlp = mlp};
    default: return {.mlp = MlpKind::dense};
  }
}

}  // namespace

std::vector<LayerKind> kinds_of_letters(std::string_view letters, bool has_experts) {
  std::vector<LayerKind> kinds;
  for (const char letter : letters) {
    kinds.push_back(kind_of_letter(letter, has_experts));
  }
  return kinds;
}

void put_kinds(std::vector<LayerKind> kinds, Transformer& model) {
  const LayerKind common = model.experts ? mixture_layer : dense_layer;
  const bool differ = std::any_of(kinds.begin(), kinds.end(), [&](const LayerKind& kind) { return kind != common; });
  model.kinds = differ ? std::move(kinds) : std::vector<LayerKind>{};
}

std::vector<LayerRun> layer_runs(const Transformer& model, std::int64_t first, std::int64_t count) {
  check(first >= 0 && count >= 0 && first + count <= model.layers, "the layers belong to the model");
  if (model.kinds.empty()) {
    return count == 0 ? std::vector<LayerRun>{}
                      : std::vector{LayerRun{model.experts ? mixture_layer : dense_layer, count}};
  }
  check(std::ssize(model.kinds) == model.layers, "every layer has a kind");
  std::vector<LayerRun> runs;
  for (std::int64_t layer = first; layer < first + count; ++layer) {
    const LayerKind& kind = model.kinds[static_cast<std::size_t>(layer)];
    if (!runs.empty() && runs.back().kind == kind) {
      ++runs.back().count;
    } else {
      runs.push_back({kind, 1});
    }
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

LayerKind first_attending(const Transformer& model) {
  for (const LayerRun& run : layer_runs(model)) {
    if (run.kind.attention) {
      return run.kind;
    }
  }
  return dense_layer;
}

namespace {

/// Returns the mean number of keys in a sliding window; a window of 0 or more than `seq` holds all keys.
double mean_in_window(std::int64_t window, std::int64_t seq) {
  const auto length = static_cast<double>(seq);
  const auto width = static_cast<double>(window);
  return window == 0 || window >= seq ? 0.5 * length : width - 0.5 * width * width / length;
}

double mean_in_chunks(std::int64_t chunk, std::int64_t seq) {
  const auto width = static_cast<double>(chunk);
  const auto rest = static_cast<double>(seq % chunk);
  return 0.5 * (static_cast<double>(seq / chunk) * width * width + rest * rest) / static_cast<double>(seq);
}

}  // namespace

double mean_keys(const Transformer& model, const LayerKind& kind, std::int64_t seq) {
  const double seen =
      kind.window > 0 && kind.chunked ? mean_in_chunks(kind.window, seq) : mean_in_window(kind.window, seq);
  const bool has_indexer = model.latent && model.latent->indexer;
  return has_indexer ? std::min(seen, mean_in_window(model.latent->indexer->keys, seq)) : seen;
}

std::int64_t last_keys(const Transformer& model, const LayerKind& kind, std::int64_t seq) {
  const bool is_whole = kind.window == 0;
  const std::int64_t seen = is_whole ? seq : kind.chunked ? (seq - 1) % kind.window + 1 : std::min(seq, kind.window);
  const bool has_indexer = model.latent && model.latent->indexer;
  return has_indexer ? std::min(seen, model.latent->indexer->keys) : seen;
}

std::int64_t kept_keys(const LayerKind& kind, std::int64_t seq) {
  return kind.window == 0 ? seq : std::min(seq, kind.window);
}

}  // namespace commfuse
