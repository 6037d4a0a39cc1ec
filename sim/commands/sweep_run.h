// SPDX-License-Identifier: Apache-2.0
// Runs a sweep into its folder: alone, as one shard of several, or as one process of several.
#pragma once

#include "sim/commands/answer.h"
#include "sim/commands/prepared_sweep.h"

namespace commfuse::sim {

/// Throws ConfigError for a user's mistake, and DatabaseError if the store cannot be used. Ends in order once the
/// caller's flag is set; the same call then resumes.
Answer run_sweep(const SweepRequest& request, Caller& caller);

/// Returns the name of the store of a shard: "results.sqlite", "shard-3-of-7.sqlite".
std::string store_name(const Shard& shard);

}  // namespace commfuse::sim
