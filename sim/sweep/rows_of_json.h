// SPDX-License-Identifier: Apache-2.0
// Reads rows of results that the program wrote as JSON.
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

/// Largest size of an input, in bytes.
inline constexpr std::size_t max_json_bytes = std::size_t{2} << 30U;

/// Callbacks that take rows, one by one.
struct JsonRows {
  /// `values` are the values in the text, in the order of result_columns(); `row` is made from them. Both are valid
  /// until the call returns.
  std::function<void(std::span<const Value> values, const ResultRow& row)> layer;
  std::function<void(const StepRow& row)> model;
};

/// Reads the output of `run` and `sweep` with -o json (a list of rows) or -o jsonl (one row per line), of layers, of
/// whole models or of both; `file` is the input's name in messages. An empty input has no rows. The input is read row
/// by row. An unknown column is ignored; a missing column has no value. Throws ConfigError with place and remedy for
/// anything but a row of `result_schema` or of older schemas, for an inconsistent row, for a row of more than 16 MiB,
/// and for more than 2 GiB of rows.
void rows_of_json(std::istream& in, const std::string& file, const JsonRows& take);
/// Reads a file as rows_of_json() reads a stream; "-" is stdin. Also throws ConfigError if the file cannot be read or
/// has no rows.
void rows_of_json_file(const std::string& file, const JsonRows& take);

/// Returns whether a file begins like JSON; always true for stdin ("-"), and for a blank file whose name is not that of
/// a store, since JSON Lines of no rows are blank.
bool begins_like_json(const std::filesystem::path& file);

}  // namespace commfuse
