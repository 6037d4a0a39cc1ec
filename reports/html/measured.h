// SPDX-License-Identifier: Apache-2.0
// A self-contained page of predicted against measured times, for a record of any executor.
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

/// A schedule with its prediction and, unless it failed, its measurement.
struct MeasuredSchedule {
  std::string name;  // "sliced (k=4)"
  Duration predicted{};
  std::optional<Estimate> median;  // median of the measured makespans
  Duration p10{};
  Duration p90{};
  std::size_t rounds = 0;
  std::string levels;  // "T0, T1, T-int, T3"; the reason if it failed; empty if its numbers were not compared
  /// The predicted and the measured timeline, on the same rank; empty if nothing was traced.
  std::vector<TracedRun> timelines{};
};

struct MeasuredReport {
  std::string title;
  std::string verdict;
  std::vector<MeasuredSchedule> schedules;
  // place and subject of the measurement: "CPU", "executor", settings
  std::vector<std::pair<std::string, std::string>> facts;
  std::string noise;    // the noise floor in words
  std::string command;  // command that recreates this page
  std::string version;  // version of the program
};

/// Draws a row for each schedule, fastest prediction first: the range of the middle 80% of makespans, their median, and
/// the prediction. The axis begins near the shortest time, because positions are compared and not lengths. Requires a
/// schedule.
Figure measured_figure(const std::vector<MeasuredSchedule>& schedules);

/// Returns HTML5 that is also XML, without scripts; the page fetches nothing. The input may contain any text.
std::string html_report(const MeasuredReport& input);

}  // namespace commfuse::reports
