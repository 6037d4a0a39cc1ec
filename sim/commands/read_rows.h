// SPDX-License-Identifier: Apache-2.0
// Rows of results from where a sweep or a run left them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "model/record/row_table.h"

namespace commfuse::sim {

struct ReadRows {
  RowTable rows;        // in the order of the file
  std::string title;    // of the sweep; of other files their name
  std::string command;  // makes these results again
};

/// FILE is the folder of a sweep, its store, JSON or JSON Lines of `run` and `sweep`; "-": JSON or JSON Lines from
/// stdin. Throws ConfigError with place and remedy for what is none of these, and for rows of whole models.
ReadRows read_rows(const std::string& file);

}  // namespace commfuse::sim
