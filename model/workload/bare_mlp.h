// SPDX-License-Identifier: Apache-2.0
// A model that is a single MLP without a gate, for questions about a single GEMM of M x N x K. Scope gate_up is tokens
// x hidden times hidden x ffn after an all-gather, scope down is tokens x ffn times ffn x hidden before a
// reduce-scatter. With experts, the MLP is a mixture without a router or shared experts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/workload/transformer.h"

namespace commfuse {

/// Widths of an MLP; both are above 0.
struct MlpWidths {
  std::int64_t hidden = 1;
  std::int64_t ffn = 1;
};

/// Experts of an MLP; each token passes through `active` of them. The experts are split over `ranks` of the tensor
/// ranks (expert parallelism), so each rank holds count / ranks experts.
struct BareExperts {
  std::int64_t count = 1;
  std::int64_t active = 1;
  std::int64_t ranks = 1;
};

/// Returns a model named after its widths, such as "8192x28672".
Transformer bare_mlp(const MlpWidths& widths);

/// Returns a model with a name such as "8192x8192-e32-top4", or "8192x8192-e32-top4-ep2" if two ranks share the
/// experts.
Transformer bare_mixture(const MlpWidths& widths, const BareExperts& experts);

/// Returns the model with a name of one of these forms. The name may state widths up to 2^20, up to 1,024 experts, no
/// more active experts than experts, and a number of ranks that divides the number of experts. Returns nullopt for any
/// other string.
std::optional<Transformer> bare_mlp_named(std::string_view name);

}  // namespace commfuse
