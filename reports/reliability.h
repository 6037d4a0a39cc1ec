// SPDX-License-Identifier: Apache-2.0
// How honest stated errors were: coverage of intervals, reliability of win probabilities, and public distributions.
// Tables of degraded machines do not count.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "model/record/score.h"

namespace commfuse::reports {

/// For terminals, 80 columns at most; empty where nothing was checked.
std::string reliability_table(std::span<const TableScore> scores);

/// Adds `coverage`, `win_probabilities` and `observations` to the object of score_json; shares are fractions.
void add_reliability(nlohmann::ordered_json& object, std::span<const TableScore> scores);

/// For terminals: each residual of a machine's file that would hold 68 % of the rows its fit read, beside that of the
/// file, its factors by what limits an op, and the coverage of rows held out with either. Says so where no table was
/// read by a fit; of fewer than least_rows_for_residual rows the residual stays.
std::string residuals_table(std::span<const TableScore> scores);

/// An array of the same: `machine`, `key`, `residual`, `new_residual` and `new_by_limit` (null: too few rows),
/// `by_limit`, `read`, `read_by_limit`, `held_out` and shares as fractions.
std::string residuals_json(std::span<const TableScore> scores);

/// Sections of docs/accuracy.md.
std::string reliability_section(std::span<const TableScore> scores);

}  // namespace commfuse::reports
