// SPDX-License-Identifier: Apache-2.0
// All points and strategies of one setting, with where each one's time goes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "reports/html/points.h"

namespace commfuse::reports {

struct RowLimits {
  std::size_t on_screen = 0;
  std::size_t on_paper = 0;  ///< 0: the table does not print.
};

/// Of the rows of a setting, by its title: the first points that have at most so many rows together; at least one
/// point.
std::string results_table(std::string_view setting, std::span<const ResultRow> rows, RowLimits limits,
                          const VerdictRule& rule = {});

}  // namespace commfuse::reports
