// SPDX-License-Identifier: Apache-2.0
#include "model/workload/model_flops.h"

#include <algorithm>

#include "model/workload/layers.h"

namespace commfuse {

namespace {

/// Returns the number of GEMM weights of attention that a token passes through, without biases and norms.
std::int64_t attention_weights(const Transformer& model) {
  if (!model.latent) {
    return model.hidden * (model.qkv_columns() + model.attended_columns());
  }
  const LatentAttention& latent = *model.latent;
  const std::int64_t queries = model.heads * (model.head_dim + latent.position_dim);
  const std::int64_t query =
      latent.query_rank > 0 ? latent.query_rank * (model.hidden + queries) : model.hidden * queries;
  const std::int64_t indexer_weights = latent.indexer
                                           ? (latent.query_rank > 0 ? latent.query_rank : model.hidden) *
                                                     latent.indexer->heads * latent.indexer->head_dim +
                                                 model.hidden * (latent.indexer->head_dim + latent.indexer->heads)
                                           : 0;
  return query + indexer_weights + model.hidden * (latent.key_value_rank + latent.position_dim) +
         latent.key_value_rank * model.heads * (model.head_dim + latent.value_dim) +
         model.heads * latent.value_dim * model.hidden;
}

std::int64_t mlp_weights(const Transformer& model, std::int64_t width, std::int64_t ffn) {
  return (model.gated_mlp ? 3 : 2) * width * ffn;
}

std::int64_t mixture_weights(const Transformer& model) {
  const Experts& experts = *model.experts;
  const std::int64_t width = experts.latent > 0 ? experts.latent : model.hidden;
  return model.hidden * experts.count + experts.active * mlp_weights(model, width, experts.ffn) +
         2 * model.hidden * experts.latent + mlp_weights(model, model.hidden, experts.shared_ffn);
}

std::int64_t state_space_weights(const Transformer& model) {
  const StateSpace& space = *model.state_space;
  const std::int64_t updates = space.recurrence == Recurrence::gated_delta ? 4 : 3;
  return model.hidden * (space.projected() + space.inner) + updates * space.inner * space.state;
}

std::int64_t layer_weights(const Transformer& whole, const LayerKind& kind) {
  const Transformer model = shape_of(whole, kind);
  return (kind.attention ? attention_weights(model) : 0) + (kind.state_space ? state_space_weights(model) : 0) +
         (kind.mlp == MlpKind::dense ? mlp_weights(model, model.hidden, model.ffn) : 0) +
         (kind.mlp == MlpKind::mixture ? mixture_weights(model) : 0);
}

/// Returns the width of queries and values together, summed over heads.
std::int64_t score_width(const Transformer& model) {
  return model.latent ? model.heads * (model.head_dim + model.latent->position_dim + model.latent->value_dim)
                      : model.heads * (model.head_dim + model.value_dim());
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
  const auto* const match = std::find_if(all_recomputes.begin(), all_recomputes.end(),
                                         [&](Recompute recompute) { return name_of(recompute) == name; });
  return match == all_recomputes.end() ? std::nullopt : std::optional(*match);
}

ForwardFlops forward_flops(const Transformer& model, const Tokens& tokens, AttentionCount count) {
  const auto token_count = static_cast<double>(tokens.count());
  const double score_factor = count == AttentionCount::causal ? 1.0 : 2.0;
  ForwardFlops flops;
  double weights = 0.0;
  double scores = 0.0;  // per token: keys that it sees x cost of a score
  for (const LayerRun& run : layer_runs(model)) {
    const auto layers = static_cast<double>(run.count);
    weights += layers * static_cast<double>(layer_weights(model, run.kind));
    if (run.kind.attention) {
      scores +=
          layers * score_factor * mean_keys(model, run.kind, tokens.seq) * static_cast<double>(score_width(model));
      if (model.latent && model.latent->indexer) {
        const Indexer& indexer = *model.latent->indexer;
        scores += layers * score_factor * 0.5 * static_cast<double>(tokens.seq * indexer.heads * indexer.head_dim);
      }
    }
  }
  flops.layers = Flops{2.0 * token_count * weights};
  flops.attention = Flops{2.0 * token_count * scores};
  flops.logits = Flops{2.0 * token_count * static_cast<double>(model.hidden * model.vocab)};
  return flops;
}

Flops training_flops(const Transformer& model, const Tokens& tokens, AttentionCount count) {
  return 3.0 * forward_flops(model, tokens, count).total();
}

Flops hardware_flops(const Transformer& model, const Tokens& tokens, AttentionCount count, Recompute recompute,
                     const SelectiveRecompute& selective, bool sums_over_ranks) {
  const ForwardFlops forward = forward_flops(model, tokens, count);
  const Flops total = 3.0 * forward.total();
  switch (recompute) {
    case Recompute::none: return total;
    case Recompute::full: return total + forward.attention + forward.layers;
    case Recompute::selective: break;
  }
  double weights = 0.0;
  for (const LayerRun& run : layer_runs(model)) {
    weights += static_cast<double>(run.count) *
               static_cast<double>(recomputed_weights(shape_of(model, run.kind), run.kind, selective, sums_over_ranks));
  }
  const Flops gemms{2.0 * static_cast<double>(tokens.count()) * weights};
  return total + gemms + (selective.attention_core ? forward.attention : Flops{});
}

}  // namespace commfuse
