// SPDX-License-Identifier: Apache-2.0
// The shape of a decoder-only model: dense, with a mixture of experts, or a hybrid whose layers differ.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace commfuse {

enum class Norm : std::uint8_t {
  rms,   ///< A scale (Zhang and Sennrich, 2019).
  layer  ///< A scale and a shift.
};

enum class MlpKind : std::uint8_t { none, dense, mixture };

/// What stands in a layer, each part behind a norm of its own.
struct LayerKind {
  bool attention = false;
  bool state_space = false;
  MlpKind mlp = MlpKind::none;
  /// Keys that a query sees, its own among them: the last so many. 0: all before it.
  std::int64_t window = 0;
  bool chunked = false;       ///< The window does not slide: a query sees its own block of so many keys (Llama 4).
  std::int64_t ffn = 0;       ///< Of a dense MLP; 0: Transformer::ffn.
  std::int64_t kv_heads = 0;  ///< 0: Transformer::kv_heads.

  [[nodiscard]] std::int64_t parts() const {
    return (attention ? 1 : 0) + (state_space ? 1 : 0) + (mlp == MlpKind::none ? 0 : 1);
  }
  friend auto operator<=>(const LayerKind&, const LayerKind&) = default;
};

inline constexpr LayerKind dense_layer{.attention = true, .mlp = MlpKind::dense};
inline constexpr LayerKind mixture_layer{.attention = true, .mlp = MlpKind::mixture};

/// The MLP is one of many: a router sends each token to some of them. Sources: Jiang et al., "Mixtral of Experts",
/// 2024; DeepSeek-AI, "DeepSeek-V3", 2024 (shared experts).
struct Experts {
  std::int64_t count = 0;
  std::int64_t active = 0;      ///< A token is sent to so many.
  std::int64_t ffn = 0;         ///< Of one expert; a gated one has as many columns again for the gate.
  std::int64_t shared_ffn = 0;  ///< Of the experts that every token goes through, side by side.
  bool shared_gate = false;     ///< A weight by token for these (Qwen2-MoE).
  bool router_bias = false;     ///< One a routed expert.
  /// Tokens are made so narrow before they are sent to routed experts, and wide behind them (Nemotron 3 Super); 0: they
  /// stay as wide as they are.
  std::int64_t latent = 0;
};

/// A query attends to so many keys alone, which a small attention of its own chooses among all before it. Source:
/// DeepSeek-AI, "DeepSeek-V3.2", 2025, section 2.1 (lightning indexer).
struct Indexer {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t keys = 0;
};

/// Multi-head latent attention: queries, and keys with values, go through a narrow middle. Source: DeepSeek-AI,
/// "DeepSeek-V2", 2024, section 2.1. Transformer::head_dim is what a query and a key have without position.
struct LatentAttention {
  std::int64_t query_rank = 0;  ///< 0: queries are made from the hidden state at once (DeepSeek-V2-Lite).
  std::int64_t key_value_rank = 0;
  std::int64_t position_dim = 0;  ///< Of a head's query beside head_dim, and of the one key that all heads share.
  std::int64_t value_dim = 0;     ///< Of a head.
  std::optional<Indexer> indexer = std::nullopt;
};

/// How a decoding step attends over a latent cache (DeepSeek-V3, inference/model.py, attn_impl). absorb: the narrow
/// keys and values stay as they are, and the products that would widen them are taken into queries and outputs; naive:
/// the cache holds the wide keys and values of every head.
enum class LatentDecode : std::uint8_t { absorb, naive };

/// How a layer without attention carries what it has seen.
enum class Recurrence : std::uint8_t {
  mamba2,      ///< Dao and Gu, "Transformers are SSMs", 2024; state-spaces/mamba, modules/mamba2.py.
  gated_delta  ///< Yang et al., "Gated Delta Networks", 2025; Qwen3-Next and Qwen3.5.
};

/// Layers whose tokens meet in a state of fixed size, by head head_dim x state. A gated delta network has keys and
/// queries of `state` in `groups` heads, and values of `head_dim` in heads().
struct StateSpace {
  Recurrence recurrence = Recurrence::mamba2;
  std::int64_t inner = 0;  ///< Channels; twice the hidden size as a rule.
  std::int64_t head_dim = 0;
  std::int64_t state = 0;
  std::int64_t groups = 1;  ///< Of heads that share what they read and write the state by.
  std::int64_t convolution = 4;
  std::int64_t chunk = 256;      ///< Tokens whose outputs a kernel makes by products.
  std::int64_t state_bits = 16;  ///< Of a value of the state between two tokens.

  [[nodiscard]] std::int64_t heads() const { return inner / head_dim; }
  /// Channels of the convolution: what goes into the state, and by what it is written and read.
  [[nodiscard]] std::int64_t convolved() const { return inner + 2 * groups * state; }
  /// Columns of the in-projection: those, the gate, and by head one step width, or decay and strength of writing.
  [[nodiscard]] std::int64_t projected() const {
    return inner + convolved() + (recurrence == Recurrence::gated_delta ? 2 : 1) * heads();
  }
};

/// Delta networks keep their states in 32 bits (huggingface/transformers, modeling_qwen3_next.py).
[[nodiscard]] constexpr std::int64_t usual_state_bits(Recurrence recurrence) {
  return recurrence == Recurrence::gated_delta ? 32 : 16;
}

/// How a checkpoint keeps the weights of products where they are narrower than activations. Training has no part in it.
struct WeightFormat {
  std::string name;              ///< "fp8", "nvfp4", "int4 (awq)".
  double bits = 16.0;            ///< A weight takes so many, its share of the scales among them.
  bool narrow_products = false;  ///< Activations become as narrow before products; else weights become as wide.
  bool narrow_cache = false;     ///< Keys and values of 8 bits.
  // The share of the products of a part that is kept so; the rest, embedding, router and logits have 16 bits.
  double attention = 1.0;
  double mlp = 1.0;
  double experts = 1.0;

  /// Bits of a weight of a part, in the mean.
  [[nodiscard]] double bits_of(double share) const { return 16.0 + share * (bits - 16.0); }
};

/// Scales of queries and keys before they meet.
enum class QkNorm : std::uint8_t {
  none,
  head,  ///< One as wide as a head for all queries, one for all keys (Qwen3).
  whole  ///< As wide as all heads (OLMo 2, MiniMax-M2).
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
  std::int64_t value_head_dim = 0;  ///< Of a head's value, where it is not as wide as its key; 0: head_dim.
  bool gated_attention = false;     ///< Queries come with a gate as wide, for the output (Qwen3-Next).

  // What only parameters and memory depend on.
  Norm norm = Norm::rms;
  bool biases = false;           ///< In all products of a layer.
  bool qkv_biases = false;       ///< In that of queries, keys and values alone.
  bool tied_embeddings = false;  ///< The logits use the weight of the embedding.
  std::int64_t positions = 0;    ///< Learned ones; 0: none.
  QkNorm qk_norm = QkNorm::none;
  bool sinks = false;  ///< A learned score a head that attends to nothing (gpt-oss).

  std::optional<Experts> experts = std::nullopt;
  std::optional<LatentAttention> latent = std::nullopt;
  std::optional<StateSpace> state_space = std::nullopt;
  /// One a layer; empty: all have attention, and experts where there are some, else a dense MLP.
  std::vector<LayerKind> kinds{};
  std::optional<WeightFormat> weights = std::nullopt;  ///< As wide as activations, unless it says otherwise.

  /// Of a head's value.
  [[nodiscard]] std::int64_t value_dim() const {
    return latent ? latent->value_dim : value_head_dim > 0 ? value_head_dim : head_dim;
  }
  /// Columns of the product that makes queries, keys and values, and gates.
  [[nodiscard]] std::int64_t qkv_columns() const {
    return (gated_attention ? 2 : 1) * heads * head_dim + kv_heads * (head_dim + value_dim());
  }
  /// Columns of the attention's output, all heads together.
  [[nodiscard]] std::int64_t attended_columns() const { return heads * value_dim(); }
};

/// The model as a layer of such a kind has it: with the kind's own widths.
Transformer shape_of(const Transformer& model, const LayerKind& kind);

}  // namespace commfuse
