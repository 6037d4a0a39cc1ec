// SPDX-License-Identifier: Apache-2.0
#include "model/workload/model_flops.h"

#include <algorithm>

#include "model/workload/layers.h"

namespace commfuse {

namespace {

/// Weights of products that a token goes through in a layer: no biases, no norms.
std::int64_t attention_weights(const Transformer& model) {
  if (model.latent) {
    const LatentAttention& latent = *model.latent;
    return latent.query_rank * (model.hidden + model.heads * (model.head_dim + latent.position_dim)) +
           model.hidden * (latent.key_value_rank + latent.position_dim) +
           latent.key_value_rank * model.heads * (model.head_dim + latent.value_dim) +
           model.heads * latent.value_dim * model.hidden;
  }
  return model.hidden * (2 * model.heads + 2 * model.kv_heads) * model.head_dim;
}

std::int64_t mlp_weights(const Transformer& model, std::int64_t ffn) {
  return (model.gated_mlp ? 3 : 2) * model.hidden * ffn;
}

std::int64_t all_layer_weights(const Transformer& model) {
  const LayerCounts counts = layer_counts(model);
  std::int64_t weights = counts.attention * attention_weights(model) + counts.dense * mlp_weights(model, model.ffn);
  if (model.experts) {
    const Experts& experts = *model.experts;
    const std::int64_t one = mlp_weights(model, experts.ffn);
    weights += counts.mixture * (model.hidden * experts.count + (experts.active + experts.shared) * one);
  }
  if (model.state_space) {
    const StateSpace& space = *model.state_space;
    weights += counts.state_space * (model.hidden * (space.projected() + space.inner) + 3 * space.inner * space.state);
  }
  return weights;
}

/// Width of queries and values together, summed over heads.
std::int64_t score_width(const Transformer& model) {
  return model.latent ? model.heads * (model.head_dim + model.latent->position_dim + model.latent->value_dim)
                      : 2 * model.heads * model.head_dim;
}

}  // namespace

std::string_view name_of(Recompute recompute) {
  switch (recompute) {
    case Recompute::none: return "none";
    case Recompute::selective: return "selective";
    case Recompute::full: return "full";
  }
  return "";
}

std::optional<Recompute> recompute_named(std::string_view name) {
  const auto* const found =
      std::find_if(all_recomputes.begin(), all_recomputes.end(), [&](Recompute one) { return name_of(one) == name; });
  return found == all_recomputes.end() ? std::nullopt : std::optional(*found);
}

ForwardFlops forward_flops(const Transformer& model, const Tokens& tokens, AttentionCount count) {
  const auto all = static_cast<double>(tokens.count());
  const double seen = static_cast<double>(tokens.seq) * (count == AttentionCount::causal ? 0.5 : 1.0);
  ForwardFlops flops;
  flops.layers = Flops{2.0 * all * static_cast<double>(all_layer_weights(model))};
  flops.attention = Flops{2.0 * all * seen * static_cast<double>(layer_counts(model).attention * score_width(model))};
  flops.logits = Flops{2.0 * all * static_cast<double>(model.hidden * model.vocab)};
  return flops;
}

Flops training_flops(const Transformer& model, const Tokens& tokens, AttentionCount count) {
  return 3.0 * forward_flops(model, tokens, count).total();
}

Flops hardware_flops(const Transformer& model, const Tokens& tokens, AttentionCount count, Recompute recompute) {
  const ForwardFlops forward = forward_flops(model, tokens, count);
  Flops total = 3.0 * forward.total();
  if (recompute != Recompute::none) {
    total += forward.attention;
  }
  if (recompute == Recompute::full) {
    total += forward.layers;
  }
  return total;
}

}  // namespace commfuse
