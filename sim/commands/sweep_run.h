// SPDX-License-Identifier: Apache-2.0
// Plays a sweep into its folder: alone, as one shard of several, or as one process of several.
#pragma once

#include "sim/commands/prepared_sweep.h"

namespace commfuse::sim {

/// Returns the exit code. Throws ConfigError for a user's mistake, DatabaseError where the store cannot be used. The
/// first SIGINT or SIGTERM ends it in order, a second one at once.
int run_sweep(const SweepRequest& request);

/// The name of the store of a shard: "results.sqlite", "shard-3-of-7.sqlite".
std::string store_name(const Shard& shard);

}  // namespace commfuse::sim
