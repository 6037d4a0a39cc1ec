// SPDX-License-Identifier: Apache-2.0
// Time of the all-reduce kernels of serving frameworks; model/cost/communication.h has the formula, and when they run.
#pragma once

#include "model/hardware/link.h"
#include "model/units.h"

namespace commfuse {

/// Returns the time in one shot between two ranks, otherwise in the faster of one shot and two, whatever the size of
/// the tensor. Requires at least one rank. Throws ConfigError where the time is beyond the range of an op.
Duration custom_all_reduce_time(const CustomAllReduce& kernels, int ranks, Bytes total);

}  // namespace commfuse
