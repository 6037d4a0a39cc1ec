// SPDX-License-Identifier: Apache-2.0
// A program whose transfers have fewer bits than its tensors.
#pragma once

#include "model/program/program.h"

namespace commfuse {

/// Returns the program with exchanges, all-gathers and all-to-alls in dtype `wire` if their own dtype is wider:
/// receivers get values rounded to `wire`. Collectives that add keep their dtype, since each hop would round the sum
/// once more. Credits carry no data.
Program narrowed(Program program, DType wire);

}  // namespace commfuse
