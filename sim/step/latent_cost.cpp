// SPDX-License-Identifier: Apache-2.0
// Multi-head latent attention in a layer: training, prefill, decoding.
#include "model/cost/decode_attention.h"
#include "sim/step/layer_cost.h"

namespace commfuse {

/// Queries and keys of latent attention are wider than its values: their mean has the same FLOPs.
std::int64_t LayerCost::score_dim() const {
  return model_.latent ? (model_.head_dim + model_.latent->position_dim + model_.latent->value_dim) / 2
                       : model_.head_dim;
}

/// Tokens through the narrow middle: every tensor rank makes the narrow queries and keys of its own tokens, they are
/// gathered, and each makes the queries, keys and values of its heads of all of them (Megatron-LM,
/// transformer/multi_latent_attention.py). Rotation copies queries and keys. Decoding from narrow keys makes no wide
/// ones.
void LayerCost::latent_forward(Stream& stream) const {
  const LatentAttention& latent = *model_.latent;
  const std::int64_t heads = model_.heads / plan_.tensor;
  const std::int64_t narrow = latent.query_rank + latent.key_value_rank + latent.position_dim;
  product(stream, own_tokens_, latent.query_rank, model_.hidden);
  product(stream, own_tokens_, latent.key_value_rank + latent.position_dim, model_.hidden);
  moved(stream, 2 * own_tokens_ * (latent.query_rank + latent.key_value_rank));
  if (shares_tokens()) {
    collective(stream, tensor_group().all_gather(Bytes{width * tokens_ * narrow}));
  }
  product(stream, tokens_, heads * (model_.head_dim + latent.position_dim), latent.query_rank);
  const bool narrow_cache = point_.cached > 0 && point_.latent_decode == LatentDecode::absorb;
  if (!narrow_cache) {
    product(stream, tokens_, heads * (model_.head_dim + latent.value_dim), latent.key_value_rank);
  }
  moved(stream, (narrow_cache ? 2 : 4) * tokens_ * heads * (model_.head_dim + latent.position_dim));
}

/// The narrow gradients of all tokens are summed over the tensor ranks, each of which has those of its heads.
void LayerCost::latent_backward(Stream& stream) const {
  const LatentAttention& latent = *model_.latent;
  const std::int64_t heads = model_.heads / plan_.tensor;
  const std::int64_t narrow = latent.query_rank + latent.key_value_rank + latent.position_dim;
  moved(stream, 4 * tokens_ * heads * (model_.head_dim + latent.position_dim));
  product_backward(stream, tokens_, heads * (model_.head_dim + latent.position_dim), latent.query_rank);
  product_backward(stream, tokens_, heads * (model_.head_dim + latent.value_dim), latent.key_value_rank);
  if (plan_.tensor > 1) {
    const Group group = tensor_group();
    const Bytes gradients{width * tokens_ * narrow};
    collective(stream, plan_.sequence_parallel ? group.reduce_scatter(gradients) : group.all_reduce(gradients));
  }
  moved(stream, 4 * own_tokens_ * (latent.query_rank + latent.key_value_rank));
  product_backward(stream, own_tokens_, latent.query_rank, model_.hidden);
  product_backward(stream, own_tokens_, latent.key_value_rank + latent.position_dim, model_.hidden);
}

/// Absorbed, a query is made as narrow as the keys and an output as wide as the values, head by head: products of as
/// many FLOPs and weights as one with all heads side by side. The cache is whole on every tensor rank.
void LayerCost::latent_decode(Stream& stream) const {
  const LatentAttention& latent = *model_.latent;
  const bool absorbs = point_.latent_decode == LatentDecode::absorb;
  const std::int64_t heads = model_.heads / plan_.tensor;
  const std::int64_t keys = latent.position_dim + (absorbs ? latent.key_value_rank : model_.head_dim);
  const std::int64_t values = absorbs ? latent.key_value_rank : latent.value_dim;
  if (absorbs) {
    product(stream, tokens_, heads * latent.key_value_rank, model_.head_dim);
  }
  attention(stream, latent_decode_time(machine_.accelerator, {.batch = plan_.micro_batch,
                                                              .seq = point_.cached + 1,
                                                              .heads = heads,
                                                              .key_width = keys,
                                                              .value_width = values,
                                                              .shared = absorbs,
                                                              .dtype = decode_attention_size(point_).dtype}));
  if (absorbs) {
    product(stream, tokens_, heads * latent.value_dim, latent.key_value_rank);
  }
}

}  // namespace commfuse
