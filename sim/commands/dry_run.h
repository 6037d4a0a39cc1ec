// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/commands/prepared_sweep.h"

namespace commfuse::sim {

/// Returns lines that say how many points the sweep has, how long they take and how large the store becomes. Time and
/// size are estimates from a sample of points, which this simulates.
std::string dry_run_in_words(const PreparedSweep& prepared);

}  // namespace commfuse::sim
