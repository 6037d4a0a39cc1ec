// SPDX-License-Identifier: Apache-2.0
// Where the slices of data slicing lie.
#pragma once

#include "model/schedule/stage.h"

namespace commfuse {

/// Slice i of every rank's shard, in a buffer where the shards lie one after another.
Operand slice_of_all_shards(const Stage& stage, BufferId buffer, std::int32_t i);

/// All tokens, slice after slice, in a buffer where the shards lie one after another.
Operand all_slices(const Stage& stage, BufferId buffer);

}  // namespace commfuse
