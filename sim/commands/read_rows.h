// SPDX-License-Identifier: Apache-2.0
// Reads rows of results that a sweep or a run wrote.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "model/record/row_table.h"
#include "model/record/step_row.h"

namespace commfuse::sim {

struct ReadRows {
  RowTable rows;                  // Rows of layers, in the order of the file.
  std::vector<StepRow> models{};  // Rows of whole models, in the order of the file.
  std::string title{};    // Title of the sweep or file name; "Results" for stdin, and for a sweep without a title.
  std::string command{};  // The command that reproduces these results.
};

/// Reads the folder of a sweep, its store, or JSON or JSON Lines of `run` and `sweep`; for "-", reads JSON or JSON
/// Lines from stdin. Returns at least one row. Throws ConfigError for any other file.
ReadRows read_rows(const std::string& file);

}  // namespace commfuse::sim
