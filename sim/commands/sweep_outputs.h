// SPDX-License-Identifier: Apache-2.0
// Converts a complete store to the files that a sweep writes and the text that it prints.
#pragma once

#include <cstddef>
#include <string_view>

#include "sim/commands/answer.h"
#include "sim/commands/sweep_folder.h"
#include "sim/sweep/result_store.h"
#include "sim/sweep/sweep_file.h"

namespace commfuse::sim {

/// Largest number of rows for which a sweep writes a report and maps and, for layers, prints a table, a map or
/// verdicts. These outputs are for people, and are built in memory.
inline constexpr std::size_t max_rows_shown = 20'000;

/// Throws ConfigError for a format that a sweep of this kind does not support.
void require_format(StoreKind kind, std::string_view format);

/// Writes the files that the sweep requests and returns its answer. All bytes come from the store, so they do not
/// depend on the processes that filled it. Requires `store` to have all points of the sweep; the store's file must
/// exist as long as the answer is used.
Answer write_outputs(const Sweep& sweep, StoreReader& store, const SweepFolder& folder, std::string_view format,
                     Caller& caller);

/// Writes the rows as csv, json or jsonl. Rows of layers are streamed, so they need not fit in memory.
void write_rows(StoreReader& store, std::string_view format, const Sink& sink);

}  // namespace commfuse::sim
