// SPDX-License-Identifier: Apache-2.0
// The goals of docs/accuracy.md for errors of kernels and communication.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/record/score.h"

namespace commfuse::reports {

/// Returns the section of docs/accuracy.md that compares errors with the goals.
std::string goals_section(std::span<const TableScore> scores);

/// Formats errors as the cells "n | median | p90" of a Markdown row.
std::string error_cells(const std::vector<double>& errors);

}  // namespace commfuse::reports
