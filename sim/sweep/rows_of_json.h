// SPDX-License-Identifier: Apache-2.0
// Rows of results that a program wrote as JSON, read back.
#pragma once

#include <string>
#include <vector>

#include "model/record/result.h"

namespace commfuse {

/// TEXT is what `run` and `sweep` write with -o json (a list of rows) or -o jsonl (one row a line); FILE is its name in
/// messages. None where the text is empty. Throws ConfigError with place and remedy for what is no row of
/// `result_schema`, and for a row that does not hold together.
std::vector<ResultRow> rows_of_json(const std::string& text, const std::string& file);

}  // namespace commfuse
