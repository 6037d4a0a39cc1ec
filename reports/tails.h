// SPDX-License-Identifier: Apache-2.0
// Runs under jitter as text: percentiles with their intervals, and common causes of slow runs.
#pragma once

#include <span>
#include <string>

#include "model/record/result.h"

namespace commfuse::reports {

/// Returns a table at most 80 columns wide; empty if no row has tails. Each point has a block for each jitter, number
/// of runs and seed. Requires rows of one point to be adjacent. Blocks state their settings if the settings differ.
std::string tails_table(std::span<const ResultRow> rows);

/// Names the lowest p99 among the rows of one point that can win, and states whether there are enough samples to be
/// sure. Requires a row that can win and has tails.
std::string tail_verdict(std::span<const ResultRow> rows);

}  // namespace commfuse::reports
