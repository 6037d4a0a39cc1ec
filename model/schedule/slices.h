// SPDX-License-Identifier: Apache-2.0
// Where the slices of data slicing lie.
#pragma once

#include "model/schedule/stage.h"

namespace commfuse {

/// All tokens, slice after slice, in a buffer where the shards lie one after another.
Operand all_slices(const Stage& stage, BufferId buffer);

}  // namespace commfuse
