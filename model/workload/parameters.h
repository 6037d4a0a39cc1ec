// SPDX-License-Identifier: Apache-2.0
// How many parameters a model has, by where they are.
#pragma once

#include <cstdint>
#include <string>

#include "model/workload/layers.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// Of one layer. Norms count where they stand: one before attention, one before the MLP, one before a state space.
struct LayerParameters {
  std::int64_t attention = 0;
  std::int64_t state_space = 0;
  std::int64_t mlp = 0;             ///< Dense, or the router with the shared experts.
  std::int64_t routed_experts = 0;  ///< All of them.
  std::int64_t active_experts = 0;  ///< Those that one token goes through.

  [[nodiscard]] std::int64_t total() const { return attention + state_space + mlp + routed_experts; }
  [[nodiscard]] std::int64_t active() const { return attention + state_space + mlp + active_experts; }
};

/// Requires experts for a mixture, and a state space for a layer that has one.
///
/// Attention: hidden x (heads + 2 kv_heads) x head_dim, and heads x head_dim x hidden; for multi-head latent attention
/// the two narrow products each of queries and of keys with values (DeepSeek-V2, 2024, appendix C). MLP: 2 or, gated,
/// 3 x hidden x ffn. Biases and norms as the model has them. An indexer its queries, one key, a weight a head, and the
/// key's norm (deepseek-ai/DeepSeek-V3.2-Exp, inference/model.py).
LayerParameters layer_parameters(const Transformer& whole, const LayerKind& kind);

/// Of one layer with a state space: in-projection (2 inner + 2 groups x state + heads columns), convolution, A, D and
/// the bias of dt by head, gated norm, out-projection, norm. Of a gated delta network (huggingface/transformers,
/// modeling_qwen3_next.py) the convolution has no bias, A and the bias of dt are by head, and the gated norm is as wide
/// as a head. Requires state_space.
std::int64_t state_space_parameters(const Transformer& model);

struct ModelParameters {
  std::int64_t embedding = 0;  ///< Of tokens and of positions.
  std::int64_t layers = 0;
  std::int64_t logits = 0;  ///< 0 where they use the embedding's weight.
  std::int64_t final_norm = 0;
  std::int64_t active_layers = 0;  ///< Those that one token goes through.

  [[nodiscard]] std::int64_t total() const { return embedding + layers + logits + final_norm; }
  /// As papers count "active" ones: embedding and logits are in.
  [[nodiscard]] std::int64_t active() const { return embedding + active_layers + logits + final_norm; }
};

ModelParameters parameters_of(const Transformer& model);

/// "70.6B parameters"; "671B parameters, 37.6B active" of a mixture of experts.
std::string parameters_in_words(const Transformer& model);

}  // namespace commfuse
