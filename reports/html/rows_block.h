// SPDX-License-Identifier: Apache-2.0
// Rows of results as columns, for the table that sorts and filters (reports/assets/page/40_table.js).
#pragma once

#include <cstddef>
#include <vector>

#include "model/record/row_table.h"
#include "reports/html/blocks.h"
#include "reports/html/overview.h"

namespace commfuse::reports {

/// Largest number of rows in a page, so that it stays below 5 MB and opens within a second.
inline constexpr std::size_t max_page_rows = 40'000;

/// Rows that a page contains: all rows, or the rows of evenly spaced points, cut at max_page_rows.
struct PageRows {
  std::vector<std::size_t> rows;
  std::size_t points = 0;      ///< Number of points whose rows the page contains; 0 if it has all rows.
  std::size_t all_points = 0;  ///< Number of all points; 0 if the page has all rows.
};
PageRows page_rows(const RowTable& rows);

/// Writes the bytes of a ColumnBlock. Times are whole picoseconds. Omits most columns of words
/// in which all rows agree, and columns of numbers that no row has.
void write_rows_block(const RowTable& rows, const PageRows& page, const Overview& overview, const TakeBytes& take);

}  // namespace commfuse::reports
