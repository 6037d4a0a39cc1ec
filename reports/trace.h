// SPDX-License-Identifier: Apache-2.0
// Timelines for ui.perfetto.dev and chrome://tracing, strategies side by side on one time axis.
#pragma once

#include <filesystem>
#include <span>

#include "reports/traced_run.h"

namespace commfuse::reports {

/// Chrome JSON, gzip where the path ends in .gz. One process a (run, rank): pid = 1000 i + rank + 1 for run i from 0 (a
/// larger power of ten where a run has over 999 ranks); one track a lane; one slice an op, in microseconds with all six
/// decimals, so no picosecond is lost. The file is there whole or not at all: throws as AtomicFile does.
void write_trace(std::span<const TracedRun> runs, const std::filesystem::path& path);

}  // namespace commfuse::reports
