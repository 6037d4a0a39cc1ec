// SPDX-License-Identifier: Apache-2.0
// Rows of results that a program wrote as JSON, read back.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <istream>
#include <span>
#include <string>

#include "model/record/result.h"
#include "model/record/step_row.h"

namespace commfuse {

/// All rows of a text together.
inline constexpr std::size_t most_json_bytes = std::size_t{2} << 30U;

/// What takes rows, one by one.
struct JsonRows {
  /// `values` as the text has them, in the order of result_columns(), and the row of them. Both live until it returns.
  std::function<void(std::span<const Value> values, const ResultRow& row)> layer;
  std::function<void(const StepRow& row)> model;
};

/// IN has what `run` and `sweep` write with -o json (a list of rows) or -o jsonl (one row a line), of layers, of whole
/// models or of both; FILE is its name in messages. None where it is empty. It is read row by row. A column that nobody
/// knows is ignored, one that is missing is absent. Throws ConfigError with place and remedy for what is no row of
/// `result_schema` or of the forms before it, for a row that does not hold together, for one of more than 16 MiB, and
/// for more than 2 GiB of them.
void rows_of_json(std::istream& in, const std::string& file, const JsonRows& take);
/// The same of a file; "-": of stdin. Throws ConfigError where it cannot be read, or holds no rows.
void rows_of_json_file(const std::string& file, const JsonRows& take);

/// Whether a file begins like JSON; stdin ("-") is taken to.
bool begins_like_json(const std::filesystem::path& file);

}  // namespace commfuse
