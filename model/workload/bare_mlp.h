// SPDX-License-Identifier: Apache-2.0
// A model that is a single MLP without a gate, for questions about a single GEMM of M x N x K. Scope gate_up is tokens
// x hidden times hidden x ffn after an all-gather, scope down is tokens x ffn times ffn x hidden before a
// reduce-scatter.
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

/// Returns a model named "8192x28672".
Transformer bare_mlp(const MlpWidths& widths);

/// Returns the model of a name such as "8192x28672", with sizes up to 2^20; nullopt for any other text.
std::optional<Transformer> bare_mlp_named(std::string_view name);

}  // namespace commfuse
