// SPDX-License-Identifier: Apache-2.0
// Draws the parts of each strategy's time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/figure/figure.h"
#include "reports/traced_run.h"

namespace commfuse::reports {

/// A part of a makespan. Head, bubble and tail exclude their local work.
struct TimePart {
  /// "compute", "slicing", "stretch", "local", "head", "bubble" or "tail"; "exposed" in place of the last three.
  std::string name;
  Role role = Role::essential;
  bool hatched = false;
  Duration time{};
};

/// Returns parts that sum to the makespan, in whole picoseconds, including parts that take no time. If the timeline is
/// from another run than the row, head, bubble and tail are one part, "exposed".
std::vector<TimePart> time_parts(const TracedRun& run);

/// Draws a bar for each run, all of the same point. Requires at least one run.
Figure breakdown_figure(std::span<const TracedRun> runs, std::string id = "breakdown");

}  // namespace commfuse::reports
