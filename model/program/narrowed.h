// SPDX-License-Identifier: Apache-2.0
// A program whose transfers have fewer bits than its tensors.
#pragma once

#include "model/program/program.h"

namespace commfuse {

/// Returns the program with exchanges, all-gathers and all-to-alls in dtype `wire` if theirs is wider: receivers get
/// values rounded to `wire`. Collectives that add keep their dtype, since each of their hops would round again. Credits
/// carry no data.
Program narrowed(Program program, DType wire);

}  // namespace commfuse
