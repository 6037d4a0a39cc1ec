// SPDX-License-Identifier: Apache-2.0
// Timelines for ui.perfetto.dev and chrome://tracing, strategies side by side on one time axis.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "reports/traced_run.h"

namespace commfuse::reports {

/// Traces with more slices are written as protobuf unless the name has an ending that trace_path() keeps, because
/// viewers read protobuf several times as fast.
inline constexpr std::size_t max_json_slices = 200'000;

/// Returns the path if it ends in .json, .gz or .pftrace, is an output stream, or exists and is not a regular file;
/// else the path with .json or .pftrace added.
std::filesystem::path trace_path(std::span<const TracedRun> runs, const std::filesystem::path& path);

/// Writes Chrome JSON, compressed if the path ends in .gz, or Perfetto's protobuf if it ends in .pftrace (see
/// trace_perfetto.h). One process per run and rank: pid = 1000 i + rank + 1 for run i from 0 (a larger power of ten
/// where a run has over 999 ranks); one track per lane; one slice per op, in microseconds with six decimals, so no
/// picosecond is lost; a counter of the bytes in flight; an arrow from every send to its receive. Writes the file
/// completely or not at all; throws as AtomicFile does.
void write_trace(std::span<const TracedRun> runs, const std::filesystem::path& path);

}  // namespace commfuse::reports
