// SPDX-License-Identifier: Apache-2.0
// A table of the points and strategies of one setting, with the parts of each time.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/html/points.h"

namespace commfuse::reports {

struct RowLimits {
  std::size_t on_screen = 0;            ///< Largest number of rows on the screen.
  std::vector<std::size_t> on_paper{};  ///< Index of the first row of each point to print, in the table of all results.
  std::size_t first_row = 0;            ///< Index of this setting's first row, in the table of all results.
};

/// Returns a titled table of a setting's rows. Contains as many of the first points as fit in limits.on_screen rows,
/// but at least one.
std::string results_table(std::string_view setting, std::span<const ResultRow> rows, const RowLimits& limits,
                          const VerdictRule& rule = {});

}  // namespace commfuse::reports
