// SPDX-License-Identifier: Apache-2.0
// Result rows as text for programs: JSON, JSON Lines, CSV. Every column, in one order.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/record/result.h"

namespace commfuse::reports {

/// An array of objects, one a line. A column that does not apply is null.
std::string to_json(std::span<const ResultRow> rows);
/// One object a line.
std::string to_json_lines(std::span<const ResultRow> rows);
/// The same with `verdict` behind the columns, null where it is empty. Requires one a row.
std::string to_json(std::span<const ResultRow> rows, std::span<const std::string> verdicts);
std::string to_json_lines(std::span<const ResultRow> rows, std::span<const std::string> verdicts);
/// RFC 4180 with a header. A column that does not apply is empty.
std::string to_csv(std::span<const ResultRow> rows);
/// A cell of it: in quotes where it must be, behind an apostrophe where a spreadsheet would take it for a formula. A
/// number in words is left as it is.
std::string csv_text(const std::string& cell);

// The same piece by piece, for rows that come one by one and for some of the columns.

/// The columns of all rows.
std::vector<std::string_view> column_names();
/// A line, with its end.
std::string csv_line(std::span<const std::string_view> names);
std::string csv_line(std::span<const Value> values);
/// Without an end of line. Requires a name for every value.
std::string json_object(std::span<const std::string_view> names, std::span<const Value> values);

}  // namespace commfuse::reports
