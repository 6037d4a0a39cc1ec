// SPDX-License-Identifier: Apache-2.0
// How much of a layer is run as one program.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/schedule/generate.h"
#include "model/schedule/sizes.h"
#include "model/workload/sites.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// One product site, or the MLP: gate-up, activation and down in a chain.
enum class Scope : std::uint8_t { qkv, out_proj, gate_up, down, mlp };

inline constexpr std::array all_scopes{Scope::qkv, Scope::out_proj, Scope::gate_up, Scope::down, Scope::mlp};

std::string_view name_of(Scope scope);
std::optional<Scope> scope_named(std::string_view name);

/// The product sites of a scope, in order.
std::vector<SiteName> sites_of(Scope scope);

/// What is computed; depends on the model only through its kind of MLP.
Operation operation_of(Scope scope, bool gated_mlp);

/// The sizes of the operation's dimensions. Requires tokens >= 1.
std::vector<Quantity> quantities_of(Scope scope, const Transformer& model, std::int64_t tokens);

/// Model FLOPs of the unfused operator, all ranks together: its products.
Flops flops_of(Scope scope, const Transformer& model, std::int64_t tokens);

}  // namespace commfuse
