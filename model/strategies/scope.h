// SPDX-License-Identifier: Apache-2.0
// The part of a layer that runs as one program.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/program/sizes.h"
#include "model/strategies/generate.h"
#include "model/workload/sites.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// A scope is one of these:
/// - one GEMM site (qkv, out_proj, gate_up, down);
/// - a chain of sites: the attention block (QKV, causal attention, out-proj), the MLP (gate-up, activation, down), or
///   the whole layer (norm, attention block, residual, norm, MLP, residual);
/// - *_backward: the backward pass of one GEMM site, which computes the gradients of its input and of its weight;
/// - out_proj_ar, down_ar: one GEMM without sequence parallelism and its all-reduce;
/// - mlp_ar: two MLPs in a row without sequence parallelism, each with its all-reduce, residual and norm;
/// - ulysses: the attention block under Ulysses sequence parallelism;
/// - data parallelism, where every rank has its share of the tokens and of the weights. fsdp_gate_up is one GEMM whose
///   weight is gathered. data_parallel is an MLP without its activation, forward and backward, whose weights are
///   gathered and whose gradients are scattered.
enum class Scope : std::uint8_t {
  qkv,
  out_proj,
  gate_up,
  down,
  attention,
  mlp,
  layer,
  qkv_backward,
  out_proj_backward,
  gate_up_backward,
  down_backward,
  out_proj_ar,
  down_ar,
  mlp_ar,
  ulysses,
  fsdp_gate_up,
  data_parallel,
};

inline constexpr std::array all_scopes{Scope::qkv,
                                       Scope::out_proj,
                                       Scope::gate_up,
                                       Scope::down,
                                       Scope::attention,
                                       Scope::mlp,
                                       Scope::layer,
                                       Scope::qkv_backward,
                                       Scope::out_proj_backward,
                                       Scope::gate_up_backward,
                                       Scope::down_backward,
                                       Scope::out_proj_ar,
                                       Scope::down_ar,
                                       Scope::mlp_ar,
                                       Scope::ulysses,
                                       Scope::fsdp_gate_up,
                                       Scope::data_parallel};

/// Size of the input.
struct Load {
  std::int64_t batch = 1;  // number of sequences
  std::int64_t seq = 1;    // tokens per sequence
  [[nodiscard]] std::int64_t tokens() const { return batch * seq; }
};

std::string_view name_of(Scope scope);
std::optional<Scope> scope_named(std::string_view name);

/// Returns the GEMM sites of a scope, in order; under data parallelism, the sites on whose splits the scope depends.
std::vector<SiteName> sites_of(Scope scope);

/// Returns the operation of a scope, which depends on the model only through its kind of MLP.
Operation operation_of(Scope scope, bool gated_mlp);

/// Returns the kinds of the sites of an operation or a scope, in order.
std::vector<SiteKind> kinds_of(const Operation& operation);
std::vector<SiteKind> kinds_of(Scope scope);

/// Returns true if the scope is a backward pass.
bool is_backward(Scope scope);

/// Returns true if the scope is one GEMM of a bare mixture (bare_mlp.h), whose experts hold its weights.
bool is_expert_gemm(Scope scope, const Transformer& model);

/// Returns true if the scope contains the attention core, whose FLOPs are counted under the causal mask.
bool has_attention(Scope scope);

/// Returns whether kv heads may be copied. They may not if gradients of copies would have to be added up, or if Ulysses
/// ranks would need another exchange to share heads.
KeyHeads key_heads_of(Scope scope);

/// Returns the sizes of all dimensions that operations name, over all ranks together and including the kv heads that
/// `ranks` ranks copy (with_copied_heads). Requires `load` to have at least one token.
std::vector<Quantity> quantities_of(const Transformer& model, const Load& load, int ranks = 1);

/// Returns the model FLOPs of the unfused operator on all ranks together: its GEMMs, and causal attention with half the
/// FLOPs of full attention (4 x batch x seq^2 x heads x head_dim), or fewer if queries see only some keys (mean_keys).
/// Korthikanti et al. 2022 (appendix A) count the same, but without the mask. In the backward pass, the two GEMMs of a
/// site have twice the FLOPs of its forward GEMM. Every token counts once for each of its experts.
Flops flops_of(Scope scope, const Transformer& model, const Load& load);

/// Throws ConfigError, whose message is one sentence with the remedy, unless the model has the plain layers that the
/// scope needs, and tokens and weights can be split evenly over the ranks.
void require_divisible(Scope scope, const Transformer& model, const Load& load, int ranks);

}  // namespace commfuse
