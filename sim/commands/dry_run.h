// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/commands/prepared_sweep.h"

namespace commfuse::sim {

/// Returns lines that state how many points the sweep has, how long they take and how large the store becomes.
/// Estimates time and size by simulating a sample of the points.
std::string dry_run_in_words(const PreparedSweep& prepared);

}  // namespace commfuse::sim
