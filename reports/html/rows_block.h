// SPDX-License-Identifier: Apache-2.0
// All rows of results as columns, for the table that sorts and filters (reports/assets/page/40_table.js).
#pragma once

#include <span>
#include <string>

#include "model/analysis/verdict.h"
#include "model/record/result.h"

namespace commfuse::reports {

/// Bytes of a ColumnBlock. Times are whole picoseconds. Columns of words in which all rows agree stay out.
std::string rows_block(std::span<const ResultRow> rows, const VerdictRule& rule = {});

}  // namespace commfuse::reports
