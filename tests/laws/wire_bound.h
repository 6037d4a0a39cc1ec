// SPDX-License-Identifier: Apache-2.0
// A bound that no run can beat: the bytes of a schedule over the wires that they cross.
#pragma once

#include "model/hardware/machine.h"
#include "model/program/program.h"
#include "model/program/sizes.h"

namespace commfuse::laws {

/// Returns the time, in picoseconds, that the busiest wire needs if it is never idle. Exchanges take their routes, and
/// rank r is GPU r; exchanges inside kernels count only the fewest bytes that must cross each link. Collectives count
/// at the ports of GPUs: each rank receives (all-gather) or sends (reduce-scatter) the data of the other ranks, and
/// does both in an all-reduce and an all-to-all.
double wire_bound(const Program& program, const Sizes& sizes, const Machine& machine);

}  // namespace commfuse::laws
