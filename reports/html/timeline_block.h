// SPDX-License-Identifier: Apache-2.0
// Timelines as columns for the page's own canvas (reports/assets/page/30_timeline.js).
#pragma once

#include <span>
#include <string>

#include "reports/traced_run.h"

namespace commfuse::reports {

/// Bars that a page keeps; of more, those of other ranks than the critical one stay out, and then what is shorter.
inline constexpr std::size_t most_bars = 400'000;

/// Bytes of a ColumnBlock: every op of every rank with its start and length in picoseconds, what it moves and computes,
/// whether it lies on the critical path; per rank its exposed times. Requires a run.
std::string timeline_block(std::span<const TracedRun> runs, const std::string& id, const std::string& title);

}  // namespace commfuse::reports
