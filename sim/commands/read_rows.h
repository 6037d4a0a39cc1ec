// SPDX-License-Identifier: Apache-2.0
// Rows of results from where a sweep or a run left them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "model/record/row_table.h"
#include "model/record/step_row.h"

namespace commfuse::sim {

struct ReadRows {
  RowTable rows;                  // of layers, in the order of the file
  std::vector<StepRow> models{};  // of whole models, likewise
  std::string title{};            // of the sweep; of other files their name
  std::string command{};          // makes these results again
};

/// FILE is the folder of a sweep, its store, JSON or JSON Lines of `run` and `sweep`; "-": JSON or JSON Lines from
/// stdin. At least one row. Throws ConfigError with place and remedy for what is none of these.
ReadRows read_rows(const std::string& file);

}  // namespace commfuse::sim
