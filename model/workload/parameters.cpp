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

LayerParameters layer_parameters(const Transformer& model, bool mixture) {
  const std::int64_t norm = norm_parameters(model, model.hidden);
  LayerParameters layer;
  layer.attention = norm + (model.latent ? latent_attention(model) : plain_attention(model));
  if (!mixture) {
    layer.mlp = norm + mlp(model, model.ffn);
    return layer;
  }
  check(model.experts.has_value(), "a mixture has experts");
  const Experts& experts = *model.experts;
  const std::int64_t one = mlp(model, experts.ffn);
  layer.mlp = norm + model.hidden * experts.count + experts.shared * one;
  layer.routed_experts = experts.count * one;
  layer.active_experts = experts.active * one;
  return layer;
}

std::int64_t state_space_parameters(const Transformer& model) {
  check(model.state_space.has_value(), "the model has state-space layers");
  const StateSpace& space = *model.state_space;
  const std::int64_t heads = space.inner / space.head_dim;
  const std::int64_t convolved = space.inner + 2 * space.groups * space.state;
  const std::int64_t in = model.hidden * (space.inner + convolved + heads);
  return in + convolved * (space.convolution + 1) + 3 * heads + space.inner + space.inner * model.hidden +
         norm_parameters(model, model.hidden);
}

ModelParameters parameters_of(const Transformer& model) {
  ModelParameters count;
  count.embedding = (model.vocab + model.positions) * model.hidden;
  count.logits = model.tied_embeddings ? 0 : model.vocab * model.hidden;
  count.final_norm = norm_parameters(model, model.hidden);
  const std::int64_t dense = model.experts ? model.experts->dense_layers : model.layers;
  const LayerParameters plain = layer_parameters(model, false);
  count.layers = dense * plain.total();
  count.active_layers = dense * plain.active();
  if (model.experts) {
    const LayerParameters mixture = layer_parameters(model, true);
    count.layers += (model.layers - dense) * mixture.total();
    count.active_layers += (model.layers - dense) * mixture.active();
  }
  if (model.state_space) {
    count.layers += model.state_space->layers * state_space_parameters(model);
    count.active_layers += model.state_space->layers * state_space_parameters(model);
  }
  return count;
}

}  // namespace commfuse
