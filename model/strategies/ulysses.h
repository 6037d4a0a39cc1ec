// SPDX-License-Identifier: Apache-2.0
// What the generators of Ulysses sequence parallelism share. The heads of rank j are head group j.
#pragma once

#include "model/strategies/stage.h"

namespace commfuse {

/// Cuts of the own tokens from `first` on, head group after head group, of a buffer that holds all of them side by
/// side: block j of the stack is what rank j gives or gets in an all-to-all.
Operand by_head_group(const Stage& stage, BufferId own_tokens, std::int32_t first, std::int32_t count);

/// One head group, which may depend on the rank, of all rows of a buffer that holds all of them side by side.
Region head_group(const Stage& stage, BufferId all_heads, const Index& group);
/// The rows of one head group in a weight that contracts all heads.
Region head_group_rows(const Stage& stage, BufferId weight, const Index& group);

/// Ops after which rows of the input of an attention_a2a are there; `first`: nothing else of it was used before.
std::vector<OpId> attended(const Stage& stage, const Operand& rows, bool first);

}  // namespace commfuse
