// SPDX-License-Identifier: Apache-2.0
// The inputs assumed for a kind of GPU: peak, memory bandwidth and links, each with its error and its source.
#pragma once

#include <vector>

#include "model/dtype.h"
#include "model/record/capacity_plan.h"

namespace commfuse {

struct Machine;

/// Returns the inputs in the order of the report, without a peak if the machine does not support `dtype`.
std::vector<CapacityInput> inputs_of(const Machine& machine, DType dtype);

}  // namespace commfuse
