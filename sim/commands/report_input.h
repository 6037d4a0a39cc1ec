// SPDX-License-Identifier: Apache-2.0
// Builds the whole input of a report from rows of results.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reports/html/report.h"
#include "sim/point/request.h"

namespace commfuse::sim {

/// Files and choices for a report that are not among the rows.
struct ReportExtras {
  std::string measured;               // A record of commfuse-validate; empty for none.
  std::vector<std::string> fits;      // Files of measurements to which the machine is fitted.
  std::optional<std::string> jitter;  // Replaces the rows' jitter in points that are simulated again.
  /// Returns the settings of a row, by its index. If null, they come from the row itself (settings_of_row).
  std::function<Settings(std::size_t row)> settings{};
  VerdictRule rule{};
};

/// Returns all files that the command reads: the results and the files of the extras.
std::vector<std::string> files_read(const std::string& results, const ReportExtras& extras);

/// Simulates up to three points again: the most decisive point, another point for contrast, and the measured point. The
/// measured point, or else the first, is explained in detail. Notes name the points and the measurements that
/// cannot be shown. Throws ConfigError with the mistakes in the extras. Whole models have no timelines, and support
/// neither measured records nor --jitter.
reports::ReportInput report_input(std::string title, RowTable rows, std::string command,
                                  const ReportExtras& extras = {}, std::vector<StepRow> models = {});

}  // namespace commfuse::sim
