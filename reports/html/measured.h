// SPDX-License-Identifier: Apache-2.0
// Predicted against measured as one page that stands alone, for a record of any executor.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/analysis/percentiles.h"
#include "reports/figure/figure.h"
#include "reports/traced_run.h"

namespace commfuse::reports {

/// A schedule with what was predicted and, unless it failed, measured.
struct MeasuredSchedule {
  std::string name;  // "sliced (k=4)"
  Duration predicted{};
  std::optional<Estimate> median;  // of the measured makespans
  Duration p10{};
  Duration p90{};
  std::size_t rounds = 0;
  std::string levels;  // "T0, T1, T-int, T3"; why it failed; empty: its numbers were not compared
  /// As predicted and as measured, on the same rank; empty where nothing was traced.
  std::vector<TracedRun> timelines{};
};

struct MeasuredReport {
  std::string title;
  std::string verdict;
  std::vector<MeasuredSchedule> schedules;
  std::vector<std::pair<std::string, std::string>> facts;  // "CPU", "executor", settings: what was measured, and where
  std::string noise;                                       // the floor, in words
  std::string command;                                     // makes this page again
  std::string version;                                     // of the program
};

/// A row a schedule, fastest prediction first: where eight in ten makespans lie, their median, and the prediction. The
/// axis begins where the times do, as lines are compared and not lengths.
/// Requires a schedule.
Figure measured_figure(const std::vector<MeasuredSchedule>& schedules);

/// HTML5 that is XML too; no script, nothing fetched. Any text may stand in the input.
std::string html_report(const MeasuredReport& input);

}  // namespace commfuse::reports
