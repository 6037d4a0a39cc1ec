// SPDX-License-Identifier: Apache-2.0
// Where the time of each strategy goes, part by part.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/figure/figure.h"
#include "reports/traced_run.h"

namespace commfuse::reports {

/// One piece of a makespan. `exposed_*` are what is left of head, bubble and tail without the local work in them.
struct TimePart {
  std::string name;  // "compute", "slicing", "stretch", "local", "head", "bubble", "tail"
  Role role = Role::essential;
  bool hatched = false;
  Duration time{};
};

/// Their sum is the makespan, in whole picoseconds; those of no time are there too. Of a timeline that is not the row's
/// own, head, bubble and tail stand together as "exposed".
std::vector<TimePart> time_parts(const TracedRun& run);

/// A bar a run, all of the same point. Requires a run.
Figure breakdown_figure(std::span<const TracedRun> runs, std::string id = "breakdown");

}  // namespace commfuse::reports
