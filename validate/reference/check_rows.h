// SPDX-License-Identifier: Apache-2.0
// The results of `check` as text.
#pragma once

#include <span>
#include <string>

#include "validate/reference/check_point.h"

namespace commfuse::validate {

/// One line a row, or two where the schedule has a long name, at most 80 columns, and a summary line. `bound` is the
/// largest error in units of its bound. Of an executor the columns are the levels: T0, T1, T-int, T2, T3.
std::string to_table(std::span<const CheckResult> results);
/// An array of objects, one a line, each with "schema":"commfuse.check/1". What does not apply is null.
std::string to_json(std::span<const CheckResult> results);
/// RFC 4180 with a header. What does not apply is empty.
std::string to_csv(std::span<const CheckResult> results);
/// Its lines one by one, for results that are printed as they come.
std::string csv_header();
std::string csv_row(const CheckResult& result);

/// One line for every finding of every failed proof.
std::string findings_in_words(std::span<const CheckResult> results);

}  // namespace commfuse::validate
