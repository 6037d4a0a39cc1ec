// SPDX-License-Identifier: Apache-2.0
// Timelines for ui.perfetto.dev and chrome://tracing, strategies side by side on one time axis.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "reports/traced_run.h"

namespace commfuse::reports {

/// Traces of more slices default to protobuf if the name has no ending: viewers read it several times as fast.
inline constexpr std::size_t most_json_slices = 200'000;

/// Returns the path if it ends in .json, .gz or .pftrace or is not a regular file; else the path with .json or .pftrace
/// added.
std::filesystem::path trace_path(std::span<const TracedRun> runs, const std::filesystem::path& path);

/// Chrome JSON, gzip where the path ends in .gz, Perfetto's protobuf where it ends in .pftrace (see trace_perfetto.h).
/// One process a (run, rank): pid = 1000 i + rank + 1 for run i from 0 (a larger power of ten where a run has over 999
/// ranks); one track a lane; one slice an op, in microseconds with all six decimals, so no picosecond is lost; a
/// counter of the bytes under way; an arrow from every send to its receive. The file is there whole or not at all:
/// throws as AtomicFile does.
void write_trace(std::span<const TracedRun> runs, const std::filesystem::path& path);

}  // namespace commfuse::reports
