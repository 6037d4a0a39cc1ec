// SPDX-License-Identifier: Apache-2.0
// The shape of a decoder-only model: dense, with a mixture of experts, or a hybrid with state-space layers.
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

/// How a decoding step attends over a latent cache (DeepSeek-V3, inference/model.py, attn_impl). absorb: the narrow
/// keys and values stay as they are, and the products that would widen them are taken into queries and outputs; naive:
/// the cache holds the wide keys and values of every head.
enum class LatentDecode : std::uint8_t { absorb, naive };

/// A hybrid: Mamba-2 layers among others. Every layer has one part alone, and the pattern says which, a letter a layer,
/// as Megatron-LM's --hybrid-override-pattern. Source: Dao and Gu, "Transformers are SSMs", 2024, and
/// state-spaces/mamba, modules/mamba2.py.
struct StateSpace {
  static constexpr char mamba = 'M';
  static constexpr char attention = '*';
  static constexpr char mlp = '-';
  static constexpr char experts = 'E';

  std::string pattern;     ///< Transformer::layers letters.
  std::int64_t inner = 0;  ///< Channels; twice the hidden size as a rule.
  std::int64_t head_dim = 0;
  std::int64_t state = 0;
  std::int64_t groups = 1;  ///< Of heads that share what they read and write the state by.
  std::int64_t convolution = 4;
  std::int64_t chunk = 256;  ///< Tokens whose outputs a kernel makes by products.

  [[nodiscard]] std::int64_t heads() const { return inner / head_dim; }
  /// Channels of the convolution: what goes into the state, and by what it is written and read.
  [[nodiscard]] std::int64_t convolved() const { return inner + 2 * groups * state; }
  /// Columns of the in-projection: those, the gate, and one step width a head.
  [[nodiscard]] std::int64_t projected() const { return inner + convolved() + heads(); }
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
