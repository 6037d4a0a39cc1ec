// SPDX-License-Identifier: Apache-2.0
// Residuals of fits: the error that a fit leaves, and the error that would cover 68% of the rows that it read. Tables
// of degraded machines are excluded.
#pragma once

#include <span>
#include <string>

#include "model/record/score.h"

namespace commfuse::reports {

/// Returns text for terminals: for each residual of a machine's file, the residual that would cover 68% of the rows
/// that its fit read, its factors by what limits an op, and the coverage of held-out rows with the old and the new
/// residual. If no fit read a table, the text is a sentence that says so. With fewer than least_rows_for_residual rows
/// the residual stays.
std::string residuals_table(std::span<const TableScore> scores);

/// Returns the residuals of residuals_table() as a JSON array: `machine`, `key`, `residual`, `new_residual` and
/// `new_by_limit` (null: too few rows), `by_limit`, `read`, `read_by_limit`, `held_out`, and the coverage of held-out
/// rows with the old residual (`now`) and with the new one (`then`) as fractions.
std::string residuals_json(std::span<const TableScore> scores);

}  // namespace commfuse::reports
