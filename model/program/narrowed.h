// SPDX-License-Identifier: Apache-2.0
// A program whose transfers have fewer bits than its tensors.
#pragma once

#include "model/program/program.h"

namespace commfuse {

/// Returns the program with exchanges, all-gathers and all-to-alls in this dtype, where theirs is wider: receivers get
/// values that are rounded to it. Collectives that add up keep their dtype, since each of their hops would round anew.
/// Credits carry nothing.
Program narrowed(Program program, DType wire);

}  // namespace commfuse
