// SPDX-License-Identifier: Apache-2.0
// Where the slices of data slicing lie.
#pragma once

#include <functional>

#include "model/strategies/options.h"
#include "model/strategies/stage.h"

namespace commfuse {

/// Slice i of all ranks, in a buffer where the slices lie one after another.
Operand slice(const Stage& stage, BufferId buffer, std::int32_t i);

/// All tokens, slice after slice, in a buffer where the shards lie one after another.
Operand all_slices(const Stage& stage, BufferId buffer);

/// Gathers the input slice by slice into `gathered`, one slice ahead of the products: `multiply(i, arrived)` adds the
/// product of slice i, which waits for `arrived`. Gives back the last product.
OpId gather_ahead(const Stage& stage, const StrategyOptions& options, BufferId gathered,
                  const std::function<OpId(std::int32_t i, OpId arrived)>& multiply);

}  // namespace commfuse
