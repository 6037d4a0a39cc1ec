// SPDX-License-Identifier: Apache-2.0
// The four places of a layer where a matrix product meets a collective, forward, under tensor parallelism with sequence
// parallelism (Korthikanti et al. 2022, section 4.2): all-gather before QKV and gate-up, reduce-scatter after out-proj
// and down.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/units.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// Forward and backward, under tensor parallelism with sequence parallelism: all-gather and product, product and
/// reduce-scatter. Under data parallelism with sharded weights: all-gather of the weight and product; backward products
/// and reduce-scatter of the gradient. mlp_ar is both products of an MLP and an all-reduce: tensor parallelism without
/// sequence parallelism. attention_rs is the attention core and the gemm_rs behind it. Ulysses sequence parallelism,
/// where every rank keeps its tokens and has all weights: gemm_a2a gives each rank its heads of all tokens,
/// attention_a2a gives them back.
enum class SiteKind : std::uint8_t {
  ag_gemm,
  gemm_rs,
  ag_gemm_backward,
  gemm_rs_backward,
  weight_ag_gemm,
  gradient_rs,
  mlp_ar,
  attention_rs,
  gemm_a2a,
  attention_a2a
};
enum class SiteName : std::uint8_t { qkv, out_proj, gate_up, down };

inline constexpr std::array all_sites{SiteName::qkv, SiteName::out_proj, SiteName::gate_up, SiteName::down};

/// "ag_gemm", "gemm_rs_backward".
std::string_view name_of(SiteKind kind);
/// As in results: "qkv", "out_proj", "gate_up", "down".
std::string_view name_of(SiteName name);

/// One product over all ranks: tokens x contraction times contraction x columns. `ag_gemm` splits the columns over the
/// ranks and gathers the tokens; `gemm_rs` splits the contraction and scatters the tokens.
struct Site {
  SiteName name = SiteName::qkv;
  SiteKind kind = SiteKind::ag_gemm;
  std::int64_t tokens = 0;  ///< batch x sequence.
  std::int64_t contraction = 0;
  std::int64_t columns = 0;
};

/// Requires tokens >= 1.
Site site_of(const Transformer& model, SiteName name, std::int64_t tokens);

/// 2 x tokens x contraction x columns: the unfused product, all ranks together.
Flops flops_of(const Site& site);

/// What more tensor ranks than kv heads make of them.
enum class KeyHeads : std::uint8_t {
  split,  ///< Such ranks are refused: gradients of copies would have to be added up.
  copied  ///< Every rank has a copy of one, as inference engines do (vllm-project/vllm, QKVParallelLinear).
};

/// The model as tensor ranks hold it, where these have copies of kv heads, or of a state space's groups (vLLM,
/// extra_groups_for_head_shards): with one of them a rank. Nothing where no rank has a copy.
std::optional<Transformer> with_copied_heads(const Transformer& model, std::int64_t ranks);

/// Throws ConfigError, one sentence with the remedy, unless the site can be split evenly over the ranks: tokens over
/// the sequence shards; heads and kv heads (qkv), heads (out_proj), or ffn (gate_up, down) over the ranks.
void require_divisible(const Transformer& model, SiteName name, std::int64_t tokens, int ranks, KeyHeads key_heads);
/// The same for the hidden columns, where a weight of so many is spread over the ranks.
void require_divisible_hidden(const Transformer& model, int ranks);

}  // namespace commfuse
