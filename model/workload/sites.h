// SPDX-License-Identifier: Apache-2.0
// The four places of a layer at which a GEMM meets a collective in the forward pass, under tensor parallelism with
// sequence parallelism (Korthikanti et al. 2022, section 4.2): all-gather before QKV and gate-up, reduce-scatter after
// out-proj and down.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/units.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// Kinds of sites:
/// - tensor parallelism with sequence parallelism, forward and backward: ag_gemm (all-gather and GEMM), gemm_rs (GEMM
///   and reduce-scatter), and attention_rs (the attention core and the gemm_rs after it);
/// - tensor parallelism without sequence parallelism: gemm_ar (GEMM and all-reduce), and mlp_ar (both GEMMs of an MLP
///   and an all-reduce);
/// - data parallelism with sharded weights: weight_ag_gemm (all-gather of the weight and GEMM), gradient_rs (backward
///   GEMMs and reduce-scatter of the gradient);
/// - Ulysses sequence parallelism, where every rank keeps its tokens and has all weights: gemm_a2a gives each rank all
///   tokens of its own heads, attention_a2a returns the outputs to the ranks that keep the tokens.
enum class SiteKind : std::uint8_t {
  ag_gemm,
  gemm_rs,
  ag_gemm_backward,
  gemm_rs_backward,
  weight_ag_gemm,
  gradient_rs,
  gemm_ar,
  mlp_ar,
  attention_rs,
  gemm_a2a,
  attention_a2a
};
enum class SiteName : std::uint8_t { qkv, out_proj, gate_up, down };

inline constexpr std::array all_sites{SiteName::qkv, SiteName::out_proj, SiteName::gate_up, SiteName::down};

/// Returns a name such as "ag_gemm" or "gemm_rs_backward".
std::string_view name_of(SiteKind kind);
/// Returns the name in results: "qkv", "out_proj", "gate_up" or "down".
std::string_view name_of(SiteName name);

/// One GEMM over all ranks: tokens x contraction times contraction x columns. `ag_gemm` splits the columns over the
/// ranks and gathers the tokens; `gemm_rs` splits the contraction and scatters the tokens.
struct Site {
  SiteName name = SiteName::qkv;
  SiteKind kind = SiteKind::ag_gemm;
  std::int64_t tokens = 0;  ///< batch x sequence
  std::int64_t contraction = 0;
  std::int64_t columns = 0;
};

/// Returns the site. Requires tokens >= 1.
Site site_of(const Transformer& model, SiteName name, std::int64_t tokens);

/// Returns 2 x tokens x contraction x columns: the FLOPs of the unfused GEMM on all ranks together.
Flops flops_of(const Site& site);

/// Treatment of kv heads if there are more tensor ranks than kv heads.
enum class KeyHeads : std::uint8_t {
  split,  ///< Refused, because gradients of copies would have to be summed.
  /// Every rank has a copy of one kv head, as in inference engines (vllm-project/vllm, QKVParallelLinear).
  copied
};

/// Returns the model as tensor ranks hold it if they have copies of kv heads, or of groups of a state space (vLLM,
/// extra_groups_for_head_shards): with one head or group per rank. Returns nullopt if no rank has a copy.
std::optional<Transformer> with_copied_heads(const Transformer& model, std::int64_t ranks);

/// Throws ConfigError, whose message is one sentence with the remedy, unless ranks >= 1, `tokens` is 1 to 2^30, and the
/// ranks divide the site's tokens, and its heads and kv heads (qkv; see KeyHeads for more ranks than kv heads), heads
/// (out_proj) or ffn (gate_up, down).
void require_divisible(const Transformer& model, SiteName name, std::int64_t tokens, int ranks, KeyHeads key_heads);
/// Throws ConfigError, worded in the same way, unless the hidden columns of a weight can be split evenly over the
/// ranks.
void require_divisible_hidden(const Transformer& model, int ranks);

}  // namespace commfuse
