// SPDX-License-Identifier: Apache-2.0
// Rows of results that a program wrote as JSON, read back.
#pragma once

#include <cstddef>
#include <istream>
#include <string>
#include <vector>

#include "model/record/result.h"

namespace commfuse {

/// All rows of a text together.
inline constexpr std::size_t most_json_bytes = std::size_t{2} << 30U;

/// IN has what `run` and `sweep` write with -o json (a list of rows) or -o jsonl (one row a line); FILE is its name in
/// messages. None where it is empty. It is read row by row. Throws ConfigError with place and remedy for what is no row
/// of `result_schema`, for a row that does not hold together, for one of more than 16 MiB, and for more than 2 GiB of
/// them.
std::vector<ResultRow> rows_of_json(std::istream& in, const std::string& file);

}  // namespace commfuse
