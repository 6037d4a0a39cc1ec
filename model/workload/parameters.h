// SPDX-License-Identifier: Apache-2.0
// Numbers of parameters of a model, by part.
#pragma once

#include <cstdint>
#include <string>

#include "model/workload/layers.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// Parameters of one layer. A norm belongs to the part that follows it: attention, the MLP, or a state space.
struct LayerParameters {
  std::int64_t attention = 0;
  std::int64_t state_space = 0;
  std::int64_t mlp = 0;             ///< dense MLP, or a mixture without its routed experts
  std::int64_t routed_experts = 0;  ///< all routed experts
  std::int64_t active_experts = 0;  ///< routed experts that one token passes through

  [[nodiscard]] std::int64_t total() const { return attention + state_space + mlp + routed_experts; }
  [[nodiscard]] std::int64_t active() const { return attention + state_space + mlp + active_experts; }
};

/// Returns the numbers of parameters of a layer. Requires a model with experts for a mixture, and with a state space
/// for a layer that has one.
///
/// Attention: hidden x (heads + 2 kv_heads) x head_dim, and heads x head_dim x hidden; for multi-head latent attention
/// two narrow GEMMs each for queries and for keys with values (DeepSeek-V2, 2024, appendix C). MLP: 2 or, if gated, 3 x
/// hidden x ffn. Biases and norms are included if the model has them. An indexer: its queries, one key, a weight per
/// head, and the key's norm (deepseek-ai/DeepSeek-V3.2-Exp, inference/model.py).
LayerParameters layer_parameters(const Transformer& whole, const LayerKind& kind);

/// Returns the number of parameters of one layer with a state space: in-projection (2 inner + 2 groups x state + heads
/// columns), convolution, A, D and the bias of dt per head, gated norm, out-projection, norm. A gated delta network
/// (huggingface/transformers, modeling_qwen3_next.py) has one more column per head in the in-projection, no bias in the
/// convolution, no D, and a gated norm as wide as a head. Requires `model.state_space`.
std::int64_t state_space_parameters(const Transformer& model);

struct ModelParameters {
  std::int64_t embedding = 0;  ///< tokens and positions
  std::int64_t layers = 0;
  std::int64_t logits = 0;  ///< 0 if they use the embedding's weight
  std::int64_t final_norm = 0;
  std::int64_t active_layers = 0;  ///< parameters of layers that one token passes through

  [[nodiscard]] std::int64_t total() const { return embedding + layers + logits + final_norm; }
  /// Returns the number of parameters that papers count as "active", which include embedding and logits.
  [[nodiscard]] std::int64_t active() const { return embedding + active_layers + logits + final_norm; }
};

ModelParameters parameters_of(const Transformer& model);

/// Returns the number of columns of the logits on one of `tensor` ranks that share the vocabulary. If `tensor` does not
/// divide the vocabulary, each rank's share is padded to a multiple of 8 columns (16 bytes of 16-bit values), as in
/// Megatron-LM and vLLM.
std::int64_t logits_columns(const Transformer& model, std::int64_t tensor);

/// Returns "70.6B parameters", or "671B parameters, 37.6B active" for a mixture of experts.
std::string parameters_in_words(const Transformer& model);

}  // namespace commfuse
