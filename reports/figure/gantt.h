// SPDX-License-Identifier: Apache-2.0
// Timelines of the strategies of one point on one time axis, lane by lane, on one rank.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/analysis/verdict.h"
#include "reports/figure/figure.h"
#include "reports/traced_run.h"

namespace commfuse::reports {

/// An interval in which the rank runs neither essential nor local work.
struct ExposedTime {
  enum class Place : std::uint8_t { head, bubble, tail };
  Place place = Place::head;
  Instant from;
  Instant to;
};

/// Returns the intervals in order; their sum is `exposed` in the breakdown of the rank.
std::vector<ExposedTime> exposed_times(const TracedRun& run, Rank rank);

/// Draws all runs on the same rank. Requires at least one run, all of the same point.
Figure gantt_figure(std::span<const TracedRun> runs, Rank rank, std::string id = "gantt");
/// Draws each run on its own critical rank, the rank that finishes last.
Figure gantt_figure(std::span<const TracedRun> runs, std::string id = "gantt", const VerdictRule& rule = {});

}  // namespace commfuse::reports
