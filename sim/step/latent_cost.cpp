// SPDX-License-Identifier: Apache-2.0
// Prices multi-head latent attention in a layer: training, prefill, decoding.
#include <algorithm>

#include "model/cost/latent_decode.h"
#include "model/cost/memory_bound.h"
#include "model/cost/op_time.h"
#include "sim/step/layer_cost.h"

namespace commfuse {

/// Returns the mean of the widths of a key and a value, which gives the right FLOPs where these widths differ.
std::int64_t LayerCost::score_dim() const {
  return model_.latent ? (model_.head_dim + model_.latent->position_dim + model_.latent->value_dim) / 2
                       : (model_.head_dim + model_.value_dim()) / 2;
}

/// Adds the projections of latent attention. Every tensor rank computes the narrow (low-rank) queries and keys of its
/// own tokens. All ranks gather them, and each computes the wide queries, keys and values of its heads for all tokens
/// (Megatron-LM, transformer/multi_latent_attention.py). Rotation copies queries and keys. Decoding from narrow keys
/// needs no wide keys.
void LayerCost::latent_forward(Stream& stream) const {
  const LatentAttention& latent = *model_.latent;
  const std::int64_t heads = model_.heads / plan_.tensor;
  const std::int64_t narrow = latent.query_rank + latent.key_value_rank + latent.position_dim;
  const bool narrows_queries = latent.query_rank > 0;
  const std::int64_t gathered_hidden =
      narrows_queries ? 0 : model_.hidden;  // gathered if queries are computed from the hidden state
  if (narrows_queries) {
    gemm(stream, own_tokens_, latent.query_rank, model_.hidden);
  }
  gemm(stream, own_tokens_, latent.key_value_rank + latent.position_dim, model_.hidden);
  moved(stream, 2 * own_tokens_ * (latent.query_rank + latent.key_value_rank));
  if (shares_tokens()) {
    collective(stream, tensor_group().all_gather(Bytes{width * tokens_ * (narrow + gathered_hidden)}));
  }
  gemm(stream, tokens_, heads * (model_.head_dim + latent.position_dim),
       narrows_queries ? latent.query_rank : model_.hidden);
  const bool narrow_cache = point_.cached > 0 && point_.options.latent_decode == LatentDecode::absorb;
  if (!narrow_cache) {
    gemm(stream, tokens_, heads * (model_.head_dim + latent.value_dim), latent.key_value_rank);
  }
  moved(stream, (narrow_cache ? 2 : 4) * tokens_ * heads * (model_.head_dim + latent.position_dim));
  indexer(stream, Direction::forward);
}

/// Every tensor rank selects keys for all tokens (deepseek-ai/DeepSeek-V3.2-Exp, inference/model.py). It computes the
/// indexer's queries from the narrow queries, and one key per token and one weight per head from the hidden state. It
/// scores all keys before a token, in fp8 or, on GPUs without fp8, in bf16, and selects the highest scores. Scores are
/// written and read once, in fp32.
void LayerCost::indexer(Stream& stream, Direction direction) const {
  if (!model_.latent->indexer) {
    return;
  }
  const Indexer& indexer = *model_.latent->indexer;
  const std::int64_t query_source = model_.latent->query_rank > 0 ? model_.latent->query_rank : model_.hidden;
  const bool decodes = point_.cached > 0;
  const double keys = decodes ? static_cast<double>(point_.cached + 1) : 0.5 * static_cast<double>(plan_.seq);
  const double pairs = static_cast<double>(tokens_) * keys;
  const Accelerator& accelerator = machine_.accelerator;
  const bool has_fp8 = accelerator.supports(DType::fp8);
  const double rate =
      accelerator.dense_peak(has_fp8 ? DType::fp8 : DType::bf16).value * accelerator.attention.loop_efficiency.value;
  const double flops = 2.0 * pairs * static_cast<double>(indexer.heads * indexer.head_dim);
  const double bytes = 8.0 * pairs + (decodes ? pairs * static_cast<double>(indexer.head_dim) : 0.0);
  const Duration scores = std::max(op_time(flops / rate, "an indexer"),
                                   memory_bound_time(accelerator, Bytes{static_cast<std::int64_t>(bytes)}, sms_));
  if (direction == Direction::forward) {
    gemm(stream, tokens_, indexer.heads * indexer.head_dim, query_source);
    gemm(stream, tokens_, indexer.head_dim + indexer.heads, model_.hidden);
    kernel(stream, scores);
  } else {
    kernel(stream, 2 * scores);
    gemm_backward(stream, tokens_, indexer.heads * indexer.head_dim, query_source);
    gemm_backward(stream, tokens_, indexer.head_dim + indexer.heads, model_.hidden);
  }
}

/// Adds the backward pass of the projections. The narrow gradients of all tokens are summed over the tensor ranks,
/// because each rank has only the part from its heads.
void LayerCost::latent_backward(Stream& stream) const {
  const LatentAttention& latent = *model_.latent;
  const std::int64_t heads = model_.heads / plan_.tensor;
  const std::int64_t narrow = latent.query_rank + latent.key_value_rank + latent.position_dim;
  const bool narrows_queries = latent.query_rank > 0;
  indexer(stream, Direction::backward);
  moved(stream, 4 * tokens_ * heads * (model_.head_dim + latent.position_dim));
  gemm_backward(stream, tokens_, heads * (model_.head_dim + latent.position_dim),
                narrows_queries ? latent.query_rank : model_.hidden);
  gemm_backward(stream, tokens_, heads * (model_.head_dim + latent.value_dim), latent.key_value_rank);
  if (plan_.tensor > 1) {
    const Group group = tensor_group();
    const Bytes gradients{width * tokens_ * (narrow + (narrows_queries ? 0 : model_.hidden))};
    collective(stream, plan_.sequence_parallel ? group.reduce_scatter(gradients) : group.all_reduce(gradients));
  }
  moved(stream, 4 * own_tokens_ * (latent.query_rank + latent.key_value_rank));
  if (narrows_queries) {
    gemm_backward(stream, own_tokens_, latent.query_rank, model_.hidden);
  }
  gemm_backward(stream, own_tokens_, latent.key_value_rank + latent.position_dim, model_.hidden);
}

/// With absorbed weights, a query is projected to the narrow keys and an output back to the values, head by head: the
/// FLOPs and weights are the same as in one GEMM with all heads side by side. Every tensor rank holds the whole cache.
void LayerCost::latent_decode(Stream& stream) const {
  const LatentAttention& latent = *model_.latent;
  const bool absorbs = point_.options.latent_decode == LatentDecode::absorb;
  const std::int64_t heads = model_.heads / plan_.tensor;
  const std::int64_t keys = latent.position_dim + (absorbs ? latent.key_value_rank : model_.head_dim);
  const std::int64_t values = absorbs ? latent.key_value_rank : latent.value_dim;
  if (absorbs) {
    gemm(stream, tokens_, heads * latent.key_value_rank, model_.head_dim);
  }
  attention(stream, latent_decode_time(machine_.accelerator, {.batch = plan_.micro_batch,
                                                              .seq = last_keys(model_, kind_, point_.cached + 1),
                                                              .heads = heads,
                                                              .key_width = keys,
                                                              .value_width = values,
                                                              .shared = absorbs,
                                                              .dtype = decode_attention_size(point_, kind_).dtype}));
  if (absorbs) {
    gemm(stream, tokens_, heads * latent.value_dim, latent.key_value_rank);
  }
}

}  // namespace commfuse
