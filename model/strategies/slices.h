// SPDX-License-Identifier: Apache-2.0
// Positions of the slices of data slicing in buffers.
#pragma once

#include <functional>

#include "model/strategies/options.h"
#include "model/strategies/stage.h"

namespace commfuse {

/// Returns slice i of all ranks, from a buffer with one slice after another.
Operand slice(const Stage& stage, BufferId buffer, std::int32_t i);

/// Returns all tokens, slice after slice, from a buffer with one shard after another.
Operand all_slices(const Stage& stage, BufferId buffer);

/// Gathers the input slice by slice into `gathered`, one slice ahead of the GEMMs: `multiply(i, arrived)` adds the GEMM
/// of slice i, which waits for `arrived`. Returns the last GEMM.
OpId gather_ahead(const Stage& stage, const StrategyOptions& options, BufferId gathered,
                  const std::function<OpId(std::int32_t i, OpId arrived)>& multiply);

}  // namespace commfuse
