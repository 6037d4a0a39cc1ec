// SPDX-License-Identifier: Apache-2.0
// Prices what selective recomputation runs again: parts of a layer before its backward pass, and the attention core
// within it. Kernels and collectives are those of the forward pass, GEMM by GEMM, without schedules of tensor ranks.
#include <vector>

#include "model/workload/recomputation.h"
#include "sim/step/layer_cost.h"

namespace commfuse {

/// Adds the attention core of a forward pass with the exchanges of the ranks that share a sequence, which
/// TransformerEngine makes within the core (pytorch/attention/dot_product_attention/context_parallel.py).
void LayerCost::core_again(Stream& stream) const {
  context_exchange(stream, Direction::forward);
  ulysses_exchange(stream, qkv_columns());
  attention_core(stream, Direction::forward);
  ulysses_exchange(stream, attended_columns());
}

void LayerCost::selected_again(Stream& stream) {
  const SelectiveRecompute& selective = point_.framework.selective;
  if (kind_.attention) {
    norm_and_gemms_again(stream, LayerPart::attention);
    attention_again(stream);
  }
  if (kind_.state_space) {
    norm_and_gemms_again(stream, LayerPart::state_space);
  }
  if (kind_.mlp != MlpKind::none) {
    norm_and_gemms_again(stream, LayerPart::mlp);
  }
  if (kind_.mlp == MlpKind::mixture) {
    experts_again(stream);
  } else if (kind_.mlp == MlpKind::dense && selective.activation) {
    moved(stream, ((model_.gated_mlp ? 2 : 1) + 1) * tokens_ * shape_->ffn / plan_.tensor);
  }
  if (selective.alternates()) {  // additions to the residual between the parts
    for (std::int64_t part = 1; part < kind_.parts(); ++part) {
      moved(stream, 3 * norm_elements());
    }
  }
}

void LayerCost::norm_and_gemms_again(Stream& stream, LayerPart part) const {
  const SelectiveRecompute& selective = point_.framework.selective;
  if (selective.norms) {
    moved(stream, 2 * norm_elements());
  }
  for (const RecomputedGemm& recomputed : recomputed_gemms(*shape_, kind_, selective, plan_.tensor > 1)) {
    const LayerGemm& again = recomputed.gemm;
    if (recomputed.runs_again && again.part == part) {
      gemm(stream, again.share == GemmShare::tokens ? own_tokens_ : tokens_,
           again.columns / (again.share == GemmShare::columns ? plan_.tensor : 1),
           again.contraction / (again.share == GemmShare::contraction ? plan_.tensor : 1));
    }
  }
}

void LayerCost::attention_again(Stream& stream) const {
  const SelectiveRecompute& selective = point_.framework.selective;
  if (model_.latent) {
    latent_again(stream);
  } else if (selective.rotation && model_.positions == 0) {
    moved(stream, 2 * tokens_ * qkv_columns());
  }
  if (selective.alternates()) {  // outputs of GEMMs are kept as they are before the exchange
    ulysses_exchange(stream, qkv_columns());
  }
  if (selective.activation && model_.gated_attention) {
    moved(stream, 3 * tokens_ * attended_columns());
  }
}

/// The gradients of latent attention gather nothing, so recomputed GEMMs need the gather of the forward pass.
void LayerCost::latent_again(Stream& stream) const {
  const SelectiveRecompute& selective = point_.framework.selective;
  const LatentAttention& latent = *model_.latent;
  if (selective.norms) {
    moved(stream, 2 * own_tokens_ * (latent.query_rank + latent.key_value_rank));
  }
  if (selective.alternates() && shares_tokens()) {
    const std::int64_t narrow = latent.query_rank + latent.key_value_rank + latent.position_dim;
    const std::int64_t gathered = narrow + (latent.query_rank > 0 ? 0 : model_.hidden);
    collective(stream, tensor_group().all_gather(Bytes{width * tokens_ * gathered}));
  }
  if (selective.rotation) {
    moved(stream, 4 * tokens_ * model_.heads / plan_.tensor * (model_.head_dim + latent.position_dim));
  }
}

/// Adds router, gather and grouped GEMMs. The dispatch does not run again, because its result is kept.
void LayerCost::experts_again(Stream& stream) {
  const SelectiveRecompute& selective = point_.framework.selective;
  const Experts& experts = *model_.experts;
  const std::int64_t routed_tokens = tokens_ * experts.active;
  const std::int64_t permuted = plan_.expert > 1 ? own_tokens_ * experts.active : routed_tokens;
  const std::int64_t ups = model_.gated_mlp ? 2 : 1;
  const std::int64_t ffn = experts.ffn / plan_.tensor;
  if (selective.alternates()) {
    router(stream, Direction::forward);
    moved(stream, 2 * own_tokens_ * experts.count);
    moved(stream, 2 * permuted * routed_width());
    if (shares_tokens()) {
      const std::int64_t gathered = plan_.expert > 1 ? routed_tokens : tokens_;
      collective(stream, tensor_group().all_gather(Bytes{width * gathered * routed_width()}));
    }
    grouped(stream, ups * ffn, routed_width(), Direction::forward);
  }
  if (selective.activation) {
    moved(stream, (ups + 1) * routed_tokens * ffn);
  }
  if (selective.every_second_gemm_eager) {
    grouped(stream, routed_width(), ffn, Direction::forward);
  }
}

}  // namespace commfuse
