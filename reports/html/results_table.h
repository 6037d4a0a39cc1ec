// SPDX-License-Identifier: Apache-2.0
// All points and strategies of one setting, with the parts of each time.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/html/points.h"

namespace commfuse::reports {

struct RowLimits {
  std::size_t on_screen = 0;
  std::vector<std::size_t> on_paper{};  ///< First rows of the points that print, in the table of all results.
  std::size_t first_row = 0;            ///< Place of the first of these rows in that table.
};

/// Returns a table of a setting's rows, with its title: the first points that together have at most the allowed number
/// of rows; at least one point.
std::string results_table(std::string_view setting, std::span<const ResultRow> rows, const RowLimits& limits,
                          const VerdictRule& rule = {});

}  // namespace commfuse::reports
