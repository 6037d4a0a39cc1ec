// SPDX-License-Identifier: Apache-2.0
// Scores as text: a table for terminals, JSON and CSV for programs.
#pragma once

#include <span>
#include <string>

#include "model/record/score.h"

namespace commfuse::reports {

/// Returns the tables by kind, each with its parts, remarks and skipped rows; then the reliability of the stated errors
/// (reliability.h), then the tables that were not scored, with reasons.
std::string score_table(std::span<const TableScore> scores);

/// Returns one object: `schema`, `tables` (one object each, errors as fractions), `kinds` (the errors of all tables of
/// a kind together), and the members of add_reliability() and add_pays(). `median`, `p68`, `p90` and `max` are null if
/// nothing was scored.
std::string score_json(std::span<const TableScore> scores);

/// Returns CSV with a line for each time: its table and line, machine, the first part that includes it, both times in
/// us or, for a ratio of times, both ratios, and the signed error, predicted / measured - 1.
std::string score_rows_csv(std::span<const TableScore> scores);

/// Returns the kept faults of each table as `path:line: reason`, one per line, and the number of its other faulty rows.
std::string score_faults(std::span<const TableScore> scores);

}  // namespace commfuse::reports
