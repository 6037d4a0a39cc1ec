// SPDX-License-Identifier: Apache-2.0
// Results as one page that stands alone: no script, nothing fetched, light and dark, printable.
#pragma once

#include <string>
#include <vector>

#include "reports/traced_run.h"

namespace commfuse::reports {

struct ReportInput {
  std::string title;
  /// Rows of one point stand together; those without a makespan are points that could not be run.
  std::vector<ResultRow> rows;
  /// One entry a point to be shown in time, each with the strategies of that point.
  std::vector<std::vector<TracedRun>> gantts;
  std::string command;  // makes these results again
  std::string version;  // of the program
};

/// HTML5 that is XML too. Any text may stand in the input.
std::string html_report(const ReportInput& input);

}  // namespace commfuse::reports
