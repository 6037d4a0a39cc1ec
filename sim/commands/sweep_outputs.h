// SPDX-License-Identifier: Apache-2.0
// From a complete store to what a sweep leaves beside it and prints.
#pragma once

#include <cstddef>
#include <string_view>

#include "sim/commands/answer.h"
#include "sim/commands/sweep_folder.h"
#include "sim/sweep/result_store.h"
#include "sim/sweep/sweep_file.h"

namespace commfuse::sim {

/// Rows of which a table, a report or a map is made unasked: those are for people, and are made in memory.
inline constexpr std::size_t most_rows_shown = 20'000;

/// Throws ConfigError for a format that such a sweep has not.
void require_format(StoreKind kind, std::string_view format);

/// Writes the files that the sweep asks for and returns its rows. Everything comes from the store, so it is the same
/// bytes whoever filled it. Requires a store of all the sweep's points, whose file stays while the answer is used.
Answer write_outputs(const Sweep& sweep, StoreReader& store, const SweepFolder& folder, std::string_view format,
                     Caller& caller);

/// The rows in a format that needs no memory: csv, json, jsonl.
void write_rows(StoreReader& store, std::string_view format, const Sink& sink);

}  // namespace commfuse::sim
