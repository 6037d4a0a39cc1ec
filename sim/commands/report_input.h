// SPDX-License-Identifier: Apache-2.0
// From rows of results to the whole input of a report.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reports/html/report.h"
#include "sim/point/request.h"

namespace commfuse::sim {

/// Extras that a report shows beside the rows.
struct ReportExtras {
  std::string measured;               // A record of commfuse-validate; empty for none.
  std::vector<std::string> fits;      // Tables of measurements that the machine is fitted to.
  std::optional<std::string> jitter;  // The jitter for the point that is taken apart; nothing for that of the rows.
  /// Returns the settings of a row by its place; null for what the row itself tells (settings_of_row).
  std::function<Settings(std::size_t row)> settings{};
  VerdictRule rule{};
};

/// Returns the files of the results and of the extras, all of which the command reads.
std::vector<std::string> files_read(const std::string& results, const ReportExtras& extras);

/// Simulates three points again: the one that decides most, another for contrast, and one that was measured. The first
/// of them, or the measured one, is taken apart. A note names what cannot be shown. Throws ConfigError with the
/// mistakes of the extras. Whole models have no timelines, and nothing that could be measured or run under a jitter.
reports::ReportInput report_input(std::string title, RowTable rows, std::string command,
                                  const ReportExtras& extras = {}, std::vector<StepRow> models = {});

}  // namespace commfuse::sim
