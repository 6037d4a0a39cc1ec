// SPDX-License-Identifier: Apache-2.0
// Timelines as columns for the page's own canvas (reports/assets/page/30_timeline.js).
#pragma once

#include <span>
#include <string>

#include "reports/traced_run.h"

namespace commfuse::reports {

/// Number of bars above which a page includes only the bars of each run's critical rank.
inline constexpr std::size_t max_bars = 400'000;

/// Returns the bytes of a ColumnBlock: every op that takes time, with its start and length in picoseconds, its bytes
/// and operations, and whether it lies on the critical path; for each rank its exposed times. Requires at least one
/// run.
std::string timeline_block(std::span<const TracedRun> runs, const std::string& id, const std::string& title);

}  // namespace commfuse::reports
