// SPDX-License-Identifier: Apache-2.0
// Time of the all-reduce kernels of serving frameworks; model/cost/communication.h has the formula and states when the
// kernels run.
#pragma once

#include "model/hardware/link.h"
#include "model/units.h"

namespace commfuse {

/// Returns the time of one shot for up to two ranks, and of the faster of one shot and two shots for more. Ignores
/// `up_to`. Requires at least one rank. Throws ConfigError if moving the bytes takes longer than `longest_op_seconds`
/// (op_time.h).
Duration custom_all_reduce_time(const CustomAllReduce& kernels, int ranks, Bytes total);

}  // namespace commfuse
