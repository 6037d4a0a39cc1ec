// SPDX-License-Identifier: Apache-2.0
// Result rows as text for programs: JSON, JSON Lines, CSV. Every column, in one order.
#pragma once

#include <span>
#include <string>

#include "model/record/result.h"

namespace commfuse::reports {

/// An array of objects, one a line. A column that does not apply is null.
std::string to_json(std::span<const ResultRow> rows);
/// One object a line.
std::string to_json_lines(std::span<const ResultRow> rows);
/// RFC 4180 with a header. A column that does not apply is empty.
std::string to_csv(std::span<const ResultRow> rows);
/// A cell of it: in quotes where it must be.
std::string csv_text(const std::string& text);

}  // namespace commfuse::reports
