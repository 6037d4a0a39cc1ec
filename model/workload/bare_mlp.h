// SPDX-License-Identifier: Apache-2.0
// A model that is nothing but one MLP without a gate: what somebody means who asks about M x N x K. Scope gate_up is
// tokens x hidden times hidden x ffn behind an all-gather, scope down tokens x ffn times ffn x hidden before a
// reduce-scatter.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/workload/transformer.h"

namespace commfuse {

/// Named "8192x28672". Requires sizes above 0.
Transformer bare_mlp(std::int64_t hidden, std::int64_t ffn);

/// Returns the model of such a name, with sizes up to 2^20; nothing for another text.
std::optional<Transformer> bare_mlp_named(std::string_view name);

}  // namespace commfuse
