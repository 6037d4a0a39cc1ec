// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/commands/prepared_sweep.h"

namespace commfuse::sim {

/// Says in lines how many points the sweep has, and how long they take and how large the store becomes, judged by some
/// of them that it plays.
std::string dry_run_in_words(const PreparedSweep& prepared);

}  // namespace commfuse::sim
