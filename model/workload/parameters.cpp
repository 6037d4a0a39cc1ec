// SPDX-License-Identifier: Apache-2.0
#include "model/workload/parameters.h"

#include "model/check.h"

namespace commfuse {

namespace {

std::int64_t norm_parameters(const Transformer& model, std::int64_t width) {
  return (model.norm == Norm::layer ? 2 : 1) * width;
}

std::int64_t latent_attention(const Transformer& model) {
  const LatentAttention& latent = *model.latent;
  const std::int64_t query =
      latent.query_rank * (model.hidden + 1 + model.heads * (model.head_dim + latent.position_dim));
  const std::int64_t narrow = model.hidden * (latent.key_value_rank + latent.position_dim) + latent.key_value_rank;
  const std::int64_t wide = latent.key_value_rank * model.heads * (model.head_dim + latent.value_dim);
  return query + narrow + wide + model.heads * latent.value_dim * model.hidden;
}

std::int64_t plain_attention(const Transformer& model) {
  const std::int64_t columns = (model.heads + 2 * model.kv_heads) * model.head_dim;
  const std::int64_t biases = (model.biases || model.qkv_biases ? columns : 0) + (model.biases ? model.hidden : 0);
  return model.hidden * (columns + model.heads * model.head_dim) + biases;
}

std::int64_t mlp(const Transformer& model, std::int64_t ffn) {
  const std::int64_t ups = model.gated_mlp ? 2 : 1;
  return (ups + 1) * model.hidden * ffn + (model.biases ? ups * ffn + model.hidden : 0);
}

}  // namespace

LayerParameters layer_parameters(const Transformer& model, const LayerKind& kind) {
  const std::int64_t norm = norm_parameters(model, model.hidden);
  LayerParameters layer;
  if (kind.attention) {
    layer.attention = norm + (model.latent ? latent_attention(model) : plain_attention(model));
  }
  if (kind.state_space) {
    layer.state_space = state_space_parameters(model);
  }
  if (kind.mlp == MlpKind::dense) {
    layer.mlp = norm + mlp(model, model.ffn);
  }
  if (kind.mlp == MlpKind::mixture) {
    check(model.experts.has_value(), "a mixture has experts");
    const Experts& experts = *model.experts;
    const std::int64_t one = mlp(model, experts.ffn);
    layer.mlp = norm + model.hidden * experts.count + experts.shared * one;
    layer.routed_experts = experts.count * one;
    layer.active_experts = experts.active * one;
  }
  return layer;
}

std::int64_t state_space_parameters(const Transformer& model) {
  check(model.state_space.has_value(), "the model has state-space layers");
  const StateSpace& space = *model.state_space;
  return model.hidden * space.projected() + space.convolved() * (space.convolution + 1) + 3 * space.heads() +
         space.inner + space.inner * model.hidden + norm_parameters(model, model.hidden);
}

ModelParameters parameters_of(const Transformer& model) {
  ModelParameters count;
  count.embedding = (model.vocab + model.positions) * model.hidden;
  count.logits = model.tied_embeddings ? 0 : model.vocab * model.hidden;
  count.final_norm = norm_parameters(model, model.hidden);
  for (const LayerRun& run : layer_runs(model)) {
    const LayerParameters layer = layer_parameters(model, run.kind);
    count.layers += run.count * layer.total();
    count.active_layers += run.count * layer.active();
  }
  return count;
}

}  // namespace commfuse
