// SPDX-License-Identifier: Apache-2.0
#include "model/workload/parameters.h"

#include <fmt/format.h>

#include "model/check.h"

namespace commfuse {

namespace {

std::int64_t norm_parameters(const Transformer& model, std::int64_t width) {
  return (model.norm == Norm::layer ? 2 : 1) * width;
}

std::int64_t indexer_parameters(const Transformer& model) {
  const Indexer& indexer = *model.latent->indexer;
  const std::int64_t query_input = model.latent->query_rank > 0 ? model.latent->query_rank : model.hidden;
  return query_input * indexer.heads * indexer.head_dim + model.hidden * (indexer.head_dim + indexer.heads) +
         2 * indexer.head_dim;
}

std::int64_t latent_attention(const Transformer& model) {
  const LatentAttention& latent = *model.latent;
  const std::int64_t query_columns = model.heads * (model.head_dim + latent.position_dim);
  const std::int64_t query =
      latent.query_rank > 0 ? latent.query_rank * (model.hidden + 1 + query_columns) : model.hidden * query_columns;
  const std::int64_t narrow = model.hidden * (latent.key_value_rank + latent.position_dim) + latent.key_value_rank;
  const std::int64_t wide = latent.key_value_rank * model.heads * (model.head_dim + latent.value_dim);
  return query + narrow + wide + model.heads * latent.value_dim * model.hidden +
         (latent.indexer ? indexer_parameters(model) : 0);
}

std::int64_t qk_norm_parameters(const Transformer& model) {
  switch (model.qk_norm) {
    case QkNorm::none: return 0;
    case QkNorm::head: return 2 * model.head_dim;
    case QkNorm::whole: return (model.heads + model.kv_heads) * model.head_dim;
  }
  return 0;
}

std::int64_t plain_attention(const Transformer& model) {
  const std::int64_t columns = model.qkv_columns();
  const std::int64_t biases = (model.biases || model.qkv_biases ? columns : 0) + (model.biases ? model.hidden : 0);
  return model.hidden * (columns + model.attended_columns()) + biases + qk_norm_parameters(model) +
         (model.sinks ? model.heads : 0);
}

/// Returns the parameters of an MLP for tokens of this width.
std::int64_t mlp(const Transformer& model, std::int64_t width, std::int64_t ffn) {
  const std::int64_t ups = model.gated_mlp ? 2 : 1;
  return (ups + 1) * width * ffn + (model.biases ? ups * ffn + width : 0);
}

}  // namespace

LayerParameters layer_parameters(const Transformer& whole, const LayerKind& kind) {
  const Transformer model = shape_of(whole, kind);
  const std::int64_t norm = norm_parameters(model, model.hidden);
  LayerParameters layer;
  if (kind.attention) {
    layer.attention = norm + (model.latent ? latent_attention(model) : plain_attention(model));
  }
  if (kind.state_space) {
    layer.state_space = state_space_parameters(model);
  }
  if (kind.mlp == MlpKind::dense) {
    layer.mlp = norm + mlp(model, model.hidden, model.ffn);
  }
  if (kind.mlp == MlpKind::mixture) {
    check(model.experts.has_value(), "a mixture has experts");
    const Experts& experts = *model.experts;
    const std::int64_t per_expert = mlp(model, experts.latent > 0 ? experts.latent : model.hidden, experts.ffn);
    layer.mlp = norm + model.hidden * experts.count + (experts.router_bias ? experts.count : 0) +
                2 * model.hidden * experts.latent + (experts.shared_gate ? model.hidden : 0) +
                (experts.shared_ffn > 0 ? mlp(model, model.hidden, experts.shared_ffn) : 0);
    layer.routed_experts = experts.count * per_expert;
    layer.active_experts = experts.active * per_expert;
  }
  return layer;
}

std::int64_t state_space_parameters(const Transformer& model) {
  check(model.state_space.has_value(), "the model has state-space layers");
  const StateSpace& space = *model.state_space;
  const std::int64_t common_parameters =
      model.hidden * (space.projected() + space.inner) + norm_parameters(model, model.hidden);
  return space.recurrence == Recurrence::mamba2
             ? common_parameters + space.convolved() * (space.convolution + 1) + 3 * space.heads() + space.inner
             : common_parameters + space.convolved() * space.convolution + 2 * space.heads() + space.head_dim;
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

std::int64_t logits_columns(const Transformer& model, std::int64_t tensor) {
  constexpr std::int64_t aligned = 8;
  const std::int64_t unit = model.vocab % tensor == 0 ? 1 : aligned;
  return (model.vocab + unit * tensor - 1) / (unit * tensor) * unit;
}

std::string parameters_in_words(const Transformer& model) {
  const auto words = [](std::int64_t count) {
    const auto number = static_cast<double>(count);
    return number < 999.5e6   ? fmt::format("{:.3g}M", number / 1e6)
           : number < 999.5e9 ? fmt::format("{:.3g}B", number / 1e9)
                              : fmt::format("{:.3g}T", number / 1e12);
  };
  const ModelParameters count = parameters_of(model);
  return count.active() == count.total()
             ? fmt::format("{} parameters", words(count.total()))
             : fmt::format("{} parameters, {} active", words(count.total()), words(count.active()));
}

}  // namespace commfuse
