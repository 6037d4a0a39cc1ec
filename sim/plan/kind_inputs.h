// SPDX-License-Identifier: Apache-2.0
// What a kind of GPUs is taken to be: its peak, its memory and its links, each with how sure it is and where it is
// from.
#pragma once

#include <vector>

#include "model/dtype.h"
#include "model/record/capacity_plan.h"

namespace commfuse {

struct Machine;

/// In the order of reading; a machine without that dtype has no peak of it.
std::vector<CapacityInput> inputs_of(const Machine& machine, DType dtype);

}  // namespace commfuse
