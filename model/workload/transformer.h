// SPDX-License-Identifier: Apache-2.0
// Shape of a decoder-only model: dense, with a mixture of experts, or a hybrid whose layers differ.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace commfuse {

enum class Norm : std::uint8_t {
  rms,   ///< a scale (Zhang and Sennrich, 2019)
  layer  ///< a scale and a shift
};

enum class MlpKind : std::uint8_t { none, dense, mixture };

/// Parts of a layer, each after its own norm.
struct LayerKind {
  bool attention = false;
  bool state_space = false;
  MlpKind mlp = MlpKind::none;
  /// Number of most recent keys that a query sees, including its own. 0: its own key and all before it.
  std::int64_t window = 0;
  bool chunked = false;       ///< The window does not slide: a query sees its own block of `window` keys (Llama 4).
  std::int64_t ffn = 0;       ///< width of a dense MLP; 0: Transformer::ffn
  std::int64_t kv_heads = 0;  ///< 0: Transformer::kv_heads.

  [[nodiscard]] std::int64_t parts() const {
    return (attention ? 1 : 0) + (state_space ? 1 : 0) + (mlp == MlpKind::none ? 0 : 1);
  }
  friend auto operator<=>(const LayerKind&, const LayerKind&) = default;
};

inline constexpr LayerKind dense_layer{.attention = true, .mlp = MlpKind::dense};
inline constexpr LayerKind mixture_layer{.attention = true, .mlp = MlpKind::mixture};

/// Mixture of experts: a router sends each token to some of many MLPs. Sources: Jiang et al., "Mixtral of Experts",
/// 2024; DeepSeek-AI, "DeepSeek-V3", 2024 (shared experts).
struct Experts {
  std::int64_t count = 0;
  std::int64_t active = 0;      ///< number of routed experts per token
  std::int64_t ffn = 0;         ///< width of one expert, without the equally wide gate of a gated expert
  std::int64_t shared_ffn = 0;  ///< total width of the experts that every token passes through
  bool shared_gate = false;     ///< the output of shared experts is scaled by one gate value per token (Qwen2-MoE)
  bool router_bias = false;     ///< one bias per routed expert
  /// Width to which tokens are reduced before they are sent to routed experts, and restored after (Nemotron 3 Super);
  /// 0: they keep their width.
  std::int64_t latent = 0;
  /// Ranks over which the experts are split in the scopes of a layer (bare_mlp.h); 0: no scope of a layer has the
  /// experts. The plan of a whole model states its own number.
  std::int64_t layer_ranks = 0;
};

/// A small separate attention that selects a query's keys from all earlier keys. Source: DeepSeek-AI, "DeepSeek-V3.2",
/// 2025, section 2.1 (lightning indexer).
struct Indexer {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t keys = 0;
};

/// Multi-head latent attention: queries, and keys together with values, are projected down to a low rank and up again.
/// Source: DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1. Transformer::head_dim is the width of a query and a key
/// without the part that carries the position.
struct LatentAttention {
  std::int64_t query_rank = 0;  ///< 0: queries come directly from the hidden state (DeepSeek-V2-Lite)
  std::int64_t key_value_rank = 0;
  /// Width of the part of a query that carries the position (in addition to head_dim), and of the one such key that all
  /// heads share.
  std::int64_t position_dim = 0;
  std::int64_t value_dim = 0;  ///< per head
  std::optional<Indexer> indexer = std::nullopt;
};

/// Attention of a decoding step over a latent cache (DeepSeek-V3, inference/model.py, attn_impl). absorb: the cache
/// holds narrow keys and values, and the up-projections are applied to queries and outputs instead; naive: the cache
/// holds the wide keys and values of every head.
enum class LatentDecode : std::uint8_t { absorb, naive };

/// Recurrence by which a layer without attention carries past tokens.
enum class Recurrence : std::uint8_t {
  mamba2,      ///< Dao and Gu, "Transformers are SSMs", 2024; state-spaces/mamba, modules/mamba2.py.
  gated_delta  ///< Yang et al., "Gated Delta Networks", 2025; Qwen3-Next and Qwen3.5.
};

/// Layers that mix tokens through a state of fixed size, head_dim x state per head. A gated delta network has `groups`
/// heads of keys and queries of width `state`, and heads() heads of values of width `head_dim`.
struct StateSpace {
  Recurrence recurrence = Recurrence::mamba2;
  std::int64_t inner = 0;  ///< channels; usually twice the hidden size
  std::int64_t head_dim = 0;
  std::int64_t state = 0;
  std::int64_t groups = 1;  ///< groups of heads that share the inputs with which they read and write the state
  std::int64_t convolution = 4;
  std::int64_t chunk = 256;      ///< tokens per chunk, within which a kernel computes outputs by matrix products
  std::int64_t state_bits = 16;  ///< bits per value of the state that is kept between tokens

  [[nodiscard]] std::int64_t heads() const { return inner / head_dim; }
  /// Returns the number of channels of the convolution: the input of the state, and the inputs with which it is written
  /// and read.
  [[nodiscard]] std::int64_t convolved() const { return inner + 2 * groups * state; }
  /// Returns the number of columns of the in-projection: the convolution's, the gate's, and per head one step width, or
  /// the decay and the strength of writing.
  [[nodiscard]] std::int64_t projected() const {
    return inner + convolved() + (recurrence == Recurrence::gated_delta ? 2 : 1) * heads();
  }
};

/// Returns 16, or 32 for delta networks, which keep their states in 32 bits (huggingface/transformers,
/// modeling_qwen3_next.py).
[[nodiscard]] constexpr std::int64_t usual_state_bits(Recurrence recurrence) {
  return recurrence == Recurrence::gated_delta ? 32 : 16;
}

/// Format of a checkpoint's GEMM weights if they are narrower than activations. Training does not use it.
struct WeightFormat {
  std::string name;    ///< "fp8", "nvfp4", "int4 (awq)"
  double bits = 16.0;  ///< bits per weight, its share of the scales included
  /// True if activations are narrowed before a GEMM; otherwise the weights are widened to the dtype of activations.
  bool narrow_products = false;
  bool narrow_cache = false;  ///< keys and values use 8 bits
  // Share of a part's GEMM weights stored in this format. The rest, and embedding, router and logits, use 16 bits.
  double attention = 1.0;
  double mlp = 1.0;
  double experts = 1.0;

  /// Returns the mean bits per weight of a part.
  [[nodiscard]] double bits_of(double share) const { return 16.0 + share * (bits - 16.0); }
};

/// Norms of queries and keys before their scores are computed.
enum class QkNorm : std::uint8_t {
  none,
  head,  ///< per head; one weight of head_dim for all query heads, one for all key heads (Qwen3)
  whole  ///< over all heads together (OLMo 2, MiniMax-M2)
};

/// Model that `load_model` has checked: all sizes positive, heads a multiple of kv_heads.
struct Transformer {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;  ///< columns of the up projection, without the equally wide gate of a gated MLP
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab = 0;
  bool gated_mlp = false;
  std::int64_t value_head_dim = 0;  ///< width of a head's value, if it differs from its key's; 0: head_dim
  bool gated_attention = false;     ///< the output has a gate as wide as the queries, computed with them (Qwen3-Next)

  // Fields that affect only parameters and memory, except that memory-bound kernels depend on biases and positions:
  Norm norm = Norm::rms;
  bool biases = false;           ///< in all GEMMs of a layer
  bool qkv_biases = false;       ///< only in the GEMM of queries, keys and values
  bool tied_embeddings = false;  ///< the logits use the weight of the embedding
  std::int64_t positions = 0;    ///< learned positions; 0: none
  QkNorm qk_norm = QkNorm::none;
  bool sinks = false;  ///< a learned score per head that attends to nothing (gpt-oss)

  std::optional<Experts> experts = std::nullopt;
  std::optional<LatentAttention> latent = std::nullopt;
  std::optional<StateSpace> state_space = std::nullopt;
  /// One per layer. Empty: all layers have attention, and experts if the model has any, else a dense MLP.
  std::vector<LayerKind> kinds{};
  /// Format of the weights, if it differs from the format of activations.
  std::optional<WeightFormat> weights = std::nullopt;

  /// Returns the width of a head's value.
  [[nodiscard]] std::int64_t value_dim() const {
    return latent ? latent->value_dim : value_head_dim > 0 ? value_head_dim : head_dim;
  }
  /// Returns the number of columns of the GEMM that computes queries, keys and values, and gates.
  [[nodiscard]] std::int64_t qkv_columns() const {
    return (gated_attention ? 2 : 1) * heads * head_dim + kv_heads * (head_dim + value_dim());
  }
  /// Returns the number of columns of the attention's output, all heads together.
  [[nodiscard]] std::int64_t attended_columns() const { return heads * value_dim(); }
};

/// Returns the model with the widths of a kind of layer.
Transformer shape_of(const Transformer& model, const LayerKind& kind);

}  // namespace commfuse
