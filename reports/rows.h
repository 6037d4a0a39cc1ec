// SPDX-License-Identifier: Apache-2.0
// Result rows as text for programs: JSON, JSON Lines and CSV, with every column in a fixed order.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/record/result.h"

namespace commfuse::reports {

/// Returns an array of objects, one per line. A column that does not apply is null.
std::string to_json(std::span<const ResultRow> rows);
/// Returns one object on each line.
std::string to_json_lines(std::span<const ResultRow> rows);
/// Adds `verdict` after the columns, null if it is empty. Requires one verdict per row.
std::string to_json(std::span<const ResultRow> rows, std::span<const std::string> verdicts);
std::string to_json_lines(std::span<const ResultRow> rows, std::span<const std::string> verdicts);
/// Returns RFC 4180 text with a header. A column that does not apply is empty.
std::string to_csv(std::span<const ResultRow> rows);
/// Returns a cell of CSV: quoted if necessary, and with an apostrophe in front if a spreadsheet would read it as a
/// formula. Numbers are unchanged.
std::string csv_text(const std::string& cell);

// Parts of these texts, for rows that are written one at a time and for a subset of the columns.

/// Returns the names of all columns.
std::vector<std::string_view> column_names();
/// Returns a line that includes its line end.
std::string csv_line(std::span<const std::string_view> names);
/// Writes 0 and 1 as false and true at indices where `are_flags` is true; `are_flags` may be shorter than the row.
std::string csv_line(std::span<const Value> values, const std::vector<bool>& are_flags = {});
/// Returns an object without a line end. Requires a name for every value. Writes flags like csv_line().
std::string json_object(std::span<const std::string_view> names, std::span<const Value> values,
                        const std::vector<bool>& are_flags = {});

}  // namespace commfuse::reports
