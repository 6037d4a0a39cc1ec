// SPDX-License-Identifier: Apache-2.0
// Timelines as Perfetto's protobuf: half the size of uncompressed JSON, and read several times as fast.
#pragma once

#include <filesystem>
#include <span>

#include "reports/traced_run.h"

namespace commfuse::reports {

/// Writes the contents of write_trace(), with the same processes, tracks, counters and arrows. The format counts
/// nanoseconds; slices keep their picoseconds as the annotations start_ps and length_ps. An op that begins and ends in
/// the same nanosecond is an instant. The processes of run i are numbered from i * stride + 1.
void write_perfetto(std::span<const TracedRun> runs, std::int64_t stride, const std::filesystem::path& path);

}  // namespace commfuse::reports
