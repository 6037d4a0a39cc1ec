// SPDX-License-Identifier: Apache-2.0
// The inputs assumed for a kind of GPUs: its peak, its memory and its links, each with its error and its source.
#pragma once

#include <vector>

#include "model/dtype.h"
#include "model/record/capacity_plan.h"

namespace commfuse {

struct Machine;

/// Returns the inputs in reading order; a machine without that dtype has no peak for it.
std::vector<CapacityInput> inputs_of(const Machine& machine, DType dtype);

}  // namespace commfuse
