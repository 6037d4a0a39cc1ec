// SPDX-License-Identifier: Apache-2.0
// All rows of results as columns, for the table that sorts and filters (reports/assets/page/40_table.js).
#pragma once

#include "model/record/row_table.h"
#include "reports/html/blocks.h"
#include "reports/html/overview.h"

namespace commfuse::reports {

/// Bytes of a ColumnBlock. Times are whole picoseconds. Columns of words in which all rows agree stay out.
void write_rows_block(const RowTable& rows, const Overview& overview, const TakeBytes& take);

}  // namespace commfuse::reports
