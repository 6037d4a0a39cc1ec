// SPDX-License-Identifier: Apache-2.0
// From a complete store to the files that a sweep leaves and to what it prints.
#pragma once

#include <cstddef>
#include <string_view>

#include "sim/commands/answer.h"
#include "sim/commands/sweep_folder.h"
#include "sim/sweep/result_store.h"
#include "sim/sweep/sweep_file.h"

namespace commfuse::sim {

/// Largest number of rows for which a sweep makes a table, a report or a map unasked. They are for people, and are made
/// in memory.
inline constexpr std::size_t most_rows_shown = 20'000;

/// Throws ConfigError for a format that such a sweep does not have.
void require_format(StoreKind kind, std::string_view format);

/// Writes the files that the sweep asks for and returns its answer. All bytes come from the store, so they do not
/// depend on who filled it. Requires a store of all the sweep's points, whose file stays while the answer is used.
Answer write_outputs(const Sweep& sweep, StoreReader& store, const SweepFolder& folder, std::string_view format,
                     Caller& caller);

/// Writes the rows in a format that needs no memory: csv, json, jsonl.
void write_rows(StoreReader& store, std::string_view format, const Sink& sink);

}  // namespace commfuse::sim
