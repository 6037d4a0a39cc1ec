// SPDX-License-Identifier: Apache-2.0
// Runs a sweep and writes its folder: as a whole, as one of several shards, or as one of several processes.
#pragma once

#include "sim/commands/answer.h"
#include "sim/commands/prepared_sweep.h"

namespace commfuse::sim {

/// Throws ConfigError for mistakes by the user, and DatabaseError if the store cannot be used. Stops cleanly once the
/// caller's flag is set; the same call then resumes the sweep.
Answer run_sweep(const SweepRequest& request, Caller& caller);

/// Returns the file name of a shard's store: "results.sqlite" for a whole sweep, otherwise such as
/// "shard-3-of-7.sqlite".
std::string store_name(const Shard& shard);

}  // namespace commfuse::sim
