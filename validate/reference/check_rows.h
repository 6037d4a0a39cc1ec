// SPDX-License-Identifier: Apache-2.0
// Writes the results of `check` as text.
#pragma once

#include <span>
#include <string>

#include "validate/reference/check_point.h"

namespace commfuse::validate {

/// Returns one line per result, or two if the schedule has a long name, and a summary line; lines have at most 80
/// columns. The column `bound` has the largest error in units of its bound. For an executor the columns are the levels:
/// T0, T1, T-int, T2, T3.
std::string to_table(std::span<const CheckResult> results);
/// Returns an array of objects, one per line, each with "schema":"commfuse.check/1". Values that do not apply are null.
std::string to_json(std::span<const CheckResult> results);
/// Returns CSV (RFC 4180) with a header. Values that do not apply are empty.
std::string to_csv(std::span<const CheckResult> results);
/// csv_header() and csv_row() return the lines of to_csv() one by one, for results that are printed during the run.
std::string csv_header();
std::string csv_row(const CheckResult& result);

/// Returns one line for every finding of every failed proof.
std::string findings_in_words(std::span<const CheckResult> results);

}  // namespace commfuse::validate
