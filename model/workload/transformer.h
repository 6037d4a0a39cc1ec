// SPDX-License-Identifier: Apache-2.0
// The shape of a decoder-only model: dense, with a mixture of experts, or with state-space layers beside.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace commfuse {

enum class Norm : std::uint8_t {
  rms,   ///< A scale (Zhang and Sennrich, 2019).
  layer  ///< A scale and a shift.
};

/// The MLP of all but the first few layers is one of many: a router sends each token to some of them. Sources: Jiang et
/// al., "Mixtral of Experts", 2024; DeepSeek-AI, "DeepSeek-V3", 2024 (shared experts, dense layers).
struct Experts {
  std::int64_t count = 0;
  std::int64_t active = 0;        ///< A token is sent to so many.
  std::int64_t ffn = 0;           ///< Of one expert; a gated one has as many columns again for the gate.
  std::int64_t shared = 0;        ///< Experts of that size that every token goes through.
  std::int64_t dense_layers = 0;  ///< The first layers, whose MLP is a plain one of Transformer::ffn.
};

/// Multi-head latent attention: queries, and keys with values, go through a narrow middle. Source: DeepSeek-AI,
/// "DeepSeek-V2", 2024, section 2.1. Transformer::head_dim is what a query and a key have without position.
struct LatentAttention {
  std::int64_t query_rank = 0;
  std::int64_t key_value_rank = 0;
  std::int64_t position_dim = 0;  ///< Of a head's query beside head_dim, and of the one key that all heads share.
  std::int64_t value_dim = 0;     ///< Of a head.
};

/// Mamba-2 layers beside those with attention and MLP. Source: Dao and Gu, "Transformers are SSMs", 2024, and
/// state-spaces/mamba, modules/mamba2.py.
struct StateSpace {
  std::int64_t layers = 0;  ///< Beside Transformer::layers.
  std::int64_t inner = 0;   ///< Channels; twice the hidden size as a rule.
  std::int64_t head_dim = 0;
  std::int64_t state = 0;
  std::int64_t groups = 1;
  std::int64_t convolution = 4;
};

/// Valid for ever after `load_model`: all sizes positive, heads a multiple of kv_heads.
struct Transformer {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;  ///< Columns of the up projection; a gated MLP has as many again for the gate.
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab = 0;
  bool gated_mlp = false;

  // What only parameters and memory depend on.
  Norm norm = Norm::rms;
  bool biases = false;           ///< In all products of a layer.
  bool qkv_biases = false;       ///< In that of queries, keys and values alone.
  bool tied_embeddings = false;  ///< The logits use the weight of the embedding.
  std::int64_t positions = 0;    ///< Learned ones; 0: none.

  std::optional<Experts> experts = std::nullopt;
  std::optional<LatentAttention> latent = std::nullopt;
  std::optional<StateSpace> state_space = std::nullopt;
};

}  // namespace commfuse
