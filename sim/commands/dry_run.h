// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/commands/prepared_sweep.h"

namespace commfuse::sim {

/// Prints how many points the sweep has, and how long they take and how large the store becomes, judged by some of them
/// that it plays.
void print_dry_run(const PreparedSweep& prepared);

}  // namespace commfuse::sim
