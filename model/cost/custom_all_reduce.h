// SPDX-License-Identifier: Apache-2.0
// Time of the all-reduce kernels of serving frameworks; model/cost/communication.h has the formula and states when they
// run.
#pragma once

#include "model/hardware/link.h"
#include "model/units.h"

namespace commfuse {

/// Returns the time of one shot for up to two ranks, and of the faster of one shot and two shots for more. Ignores
/// `up_to`. Requires at least one rank. Throws ConfigError where the time is beyond the range of an op.
Duration custom_all_reduce_time(const CustomAllReduce& kernels, int ranks, Bytes total);

}  // namespace commfuse
