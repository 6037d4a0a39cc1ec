// SPDX-License-Identifier: Apache-2.0
#include "model/workload/recomputation.h"

namespace commfuse {

namespace {

void add_latent_gemms(const Transformer& shape, std::vector<LayerGemm>& gemms) {
  const LatentAttention& latent = *shape.latent;
  const std::int64_t keys = shape.heads * (shape.head_dim + latent.position_dim);
  if (latent.query_rank > 0) {
    gemms.push_back({.share = GemmShare::tokens, .columns = latent.query_rank, .contraction = shape.hidden});
  }
  gemms.push_back(
      {.columns = keys, .contraction = latent.query_rank > 0 ? latent.query_rank : shape.hidden, .kept_columns = keys});
  gemms.push_back({.share = GemmShare::tokens,
                   .columns = latent.key_value_rank + latent.position_dim,
                   .contraction = shape.hidden});
  gemms.push_back({.columns = shape.heads * (shape.head_dim + latent.value_dim),
                   .contraction = latent.key_value_rank,
                   .kept_columns = 2 * keys});  // layer_activations counts values as wide as keys
}

void add_attention_gemms(const Transformer& shape, std::vector<LayerGemm>& gemms) {
  if (shape.latent) {
    add_latent_gemms(shape, gemms);
  } else {
    const std::int64_t queries = (shape.gated_attention ? 2 : 1) * shape.heads * shape.head_dim;
    for (const std::int64_t columns : {queries, shape.kv_heads * shape.head_dim, shape.kv_heads * shape.value_dim()}) {
      gemms.push_back({.columns = columns, .contraction = shape.hidden, .kept_columns = columns});
    }
  }
  gemms.push_back({.share = GemmShare::contraction,
                   .columns = shape.hidden,
                   .contraction = shape.attended_columns(),
                   .joins_residual = true});
}

void add_state_space_gemms(const Transformer& shape, std::vector<LayerGemm>& gemms) {
  const StateSpace& space = *shape.state_space;
  gemms.push_back({.part = LayerPart::state_space,
                   .columns = space.projected(),
                   .contraction = shape.hidden,
                   .kept_columns = space.projected()});
  gemms.push_back({.part = LayerPart::state_space,
                   .share = GemmShare::contraction,
                   .columns = shape.hidden,
                   .contraction = space.inner,
                   .joins_residual = true});
}

void add_mlp_gemms(const Transformer& shape, std::int64_t ffn, std::vector<LayerGemm>& gemms) {
  for (int up = 0; up < (shape.gated_mlp ? 2 : 1); ++up) {
    gemms.push_back({.part = LayerPart::mlp, .columns = ffn, .contraction = shape.hidden, .kept_columns = ffn});
  }
  gemms.push_back({.part = LayerPart::mlp,
                   .share = GemmShare::contraction,
                   .columns = shape.hidden,
                   .contraction = ffn,
                   .joins_residual = true});
}

void add_mixture_gemms(const Transformer& shape, std::vector<LayerGemm>& gemms) {
  const Experts& experts = *shape.experts;
  if (experts.latent > 0) {
    gemms.push_back(
        {.part = LayerPart::mlp, .share = GemmShare::tokens, .columns = experts.latent, .contraction = shape.hidden});
    gemms.push_back({.part = LayerPart::mlp,
                     .share = GemmShare::tokens,
                     .columns = shape.hidden,
                     .contraction = experts.latent,
                     .joins_residual = true});
  }
  if (experts.shared_ffn > 0) {
    add_mlp_gemms(shape, experts.shared_ffn, gemms);
  }
}

}  // namespace

std::vector<LayerGemm> gemms_of(const Transformer& shape, const LayerKind& kind) {
  std::vector<LayerGemm> gemms;
  if (kind.attention) {
    add_attention_gemms(shape, gemms);
  }
  if (kind.state_space) {
    add_state_space_gemms(shape, gemms);
  }
  if (kind.mlp == MlpKind::dense) {
    add_mlp_gemms(shape, shape.ffn, gemms);
  } else if (kind.mlp == MlpKind::mixture) {
    add_mixture_gemms(shape, gemms);
  }
  return gemms;
}

std::vector<RecomputedGemm> recomputed_gemms(const Transformer& shape, const LayerKind& kind,
                                             const SelectiveRecompute& selective, bool sums_over_ranks) {
  const LayerPart last_part = kind.mlp != MlpKind::none ? LayerPart::mlp
                              : kind.state_space        ? LayerPart::state_space
                                                        : LayerPart::attention;
  std::vector<RecomputedGemm> gemms;
  bool is_second = false;
  for (const LayerGemm& gemm : gemms_of(shape, kind)) {
    const bool is_read = !gemm.joins_residual || (!sums_over_ranks && gemm.part != last_part);
    const bool counts = is_read || selective.every_second_gemm_eager;
    const bool runs_again = selective.alternates() && is_second && counts;
    gemms.push_back({.gemm = gemm,
                     .is_read = is_read,
                     .runs_again = runs_again,
                     .keeps_unread = counts && !is_read && !runs_again});
    is_second = !is_second;
  }
  return gemms;
}

std::int64_t recomputed_weights(const Transformer& shape, const LayerKind& kind, const SelectiveRecompute& selective,
                                bool sums_over_ranks) {
  std::int64_t weights = 0;
  for (const RecomputedGemm& recomputed : recomputed_gemms(shape, kind, selective, sums_over_ranks)) {
    weights += recomputed.runs_again ? recomputed.gemm.weights() : 0;
  }
  if (selective.alternates() && kind.mlp == MlpKind::mixture) {
    const Experts& experts = *shape.experts;
    const std::int64_t width = experts.latent > 0 ? experts.latent : shape.hidden;
    const std::int64_t gemms = (shape.gated_mlp ? 2 : 1) + (selective.every_second_gemm_eager ? 1 : 0);
    weights += shape.hidden * experts.count + experts.active * gemms * width * experts.ffn;
  }
  return weights;
}

}  // namespace commfuse
