// SPDX-License-Identifier: Apache-2.0
// From rows of results to all that a report shows.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reports/html/report.h"
#include "sim/point/request.h"

namespace commfuse::sim {

/// What is shown beside the rows.
struct ReportExtras {
  std::string measured;               // a record of commfuse-validate; empty: none
  std::vector<std::string> fits;      // tables of measurements that the machine is fitted to
  std::optional<std::string> jitter;  // under which the point taken apart is run as well; nothing: the rows' own
  /// What a row was made with, by its place; null: what the row itself tells (settings_of_row).
  std::function<Settings(std::size_t row)> settings{};
  VerdictRule rule{};
};

/// With those of the results themselves, what a command reads that takes extras.
std::vector<std::string> files_read(const std::string& results, const ReportExtras& extras);

/// The point that decides most is simulated again, another for contrast, and one that was measured; the first of them,
/// or the measured one, is taken apart. What cannot be shown is a note. Throws ConfigError with the mistakes of the
/// extras. Whole models have no timelines, and nothing that could be measured or run under a jitter.
reports::ReportInput report_input(std::string title, RowTable rows, std::string command,
                                  const ReportExtras& extras = {}, std::vector<StepRow> models = {});

}  // namespace commfuse::sim
