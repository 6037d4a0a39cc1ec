// SPDX-License-Identifier: Apache-2.0
// How much of a layer is run as one program.
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

/// One product site; or in a chain: the attention block (QKV, causal attention, out-proj), the MLP (gate-up,
/// activation, down), the whole layer (norm, attention block, residual, norm, MLP, residual). The backward pass of one
/// product site: the gradients of its input and of its weight. Without sequence parallelism: two MLPs in a row, each
/// with its all-reduce, residual and norm (mlp_ar). The attention block under Ulysses sequence parallelism. Under data
/// parallelism, where every rank has its share of the tokens and of the weights: one product whose weight is gathered
/// (fsdp_gate_up); an MLP without its activation, forward and backward, whose weights are gathered and whose gradients
/// are scattered (data_parallel).
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
                                       Scope::mlp_ar,
                                       Scope::ulysses,
                                       Scope::fsdp_gate_up,
                                       Scope::data_parallel};

/// How much is fed in.
struct Load {
  std::int64_t batch = 1;  // sequences
  std::int64_t seq = 1;    // tokens of a sequence
  [[nodiscard]] std::int64_t tokens() const { return batch * seq; }
};

std::string_view name_of(Scope scope);
std::optional<Scope> scope_named(std::string_view name);

/// The product sites of a scope, in order; those whose splits it depends on under data parallelism.
std::vector<SiteName> sites_of(Scope scope);

/// What is computed; depends on the model only through its kind of MLP.
Operation operation_of(Scope scope, bool gated_mlp);

/// The kinds of its sites, in order.
std::vector<SiteKind> kinds_of(const Operation& operation);
std::vector<SiteKind> kinds_of(Scope scope);

/// Whether the scope is a backward pass.
bool is_backward(Scope scope);

/// Whether the scope holds the attention core, whose FLOPs count causally.
bool has_attention(Scope scope);

/// Gradients of copied kv heads would have to be added up, and Ulysses ranks share heads by another exchange.
KeyHeads key_heads_of(Scope scope);

/// The sizes of all dimensions that operations name, as so many ranks hold them (with_copied_heads). Requires at least
/// one token.
std::vector<Quantity> quantities_of(const Transformer& model, const Load& load, int ranks = 1);

/// Model FLOPs of the unfused operator, all ranks together: its products, and causal attention at half of full
/// (4 x batch x seq^2 x heads x head_dim), as Korthikanti et al. 2022 (appendix A) with the mask taken into account.
/// Backward, the two products of a site are twice its forward one.
Flops flops_of(Scope scope, const Transformer& model, const Load& load);

/// Throws ConfigError, one sentence with the remedy, unless tokens and weights can be split evenly over the ranks.
void require_divisible(Scope scope, const Transformer& model, const Load& load, int ranks);

}  // namespace commfuse
