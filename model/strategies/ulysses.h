// SPDX-License-Identifier: Apache-2.0
// Helpers that the generators of Ulysses sequence parallelism share. The heads of rank j are head group j.
#pragma once

#include "model/strategies/stage.h"

namespace commfuse {

/// Returns `count` cuts of the rank's own tokens starting at `first`, head group after head group, from a buffer that
/// holds all groups side by side. An all-to-all sends block j of the result to rank j, or receives it from rank j.
Operand by_head_group(const Stage& stage, BufferId own_tokens, std::int32_t first, std::int32_t count);

/// Returns all rows of one head group in a buffer that holds all groups side by side; the group may depend on the rank.
Region head_group(const Stage& stage, BufferId all_heads, const Index& group);
/// Returns the rows of one head group in a weight whose contraction runs over all heads.
Region head_group_rows(const Stage& stage, BufferId weight, const Index& group);

/// Returns the ops for which a reader of `rows` of the input of an attention_a2a waits. If the stage attends to each
/// part of the queries separately, adds the attention of these rows. `first`: these rows of the input are read first.
std::vector<OpId> attended(const Stage& stage, const Operand& rows, bool first);

}  // namespace commfuse
