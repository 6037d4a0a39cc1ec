// SPDX-License-Identifier: Apache-2.0
// Scores as text: a table for terminals, JSON for programs.
#pragma once

#include <span>
#include <string>

#include "model/record/score.h"

namespace commfuse::reports {

/// Tables by kind, then how honest the stated errors were (reliability.h), what was not scored and why, then faulty
/// rows.
std::string score_table(std::span<const TableScore> scores);

/// One object: `schema`, `tables` (one object each, errors as fractions) and `kinds` (the errors of all tables of a
/// kind together), and what add_reliability() adds. `median`, `p68`, `p90` and `max` are null where nothing was scored.
std::string score_json(std::span<const TableScore> scores);

/// A line a time: its table and line, machine, the first part its error belongs to, both times in us, and the error
/// with its sign, predicted / measured - 1.
std::string score_rows_csv(std::span<const TableScore> scores);

/// Faulty rows as `path:line: reason`, one a line.
std::string score_faults(std::span<const TableScore> scores);

}  // namespace commfuse::reports
