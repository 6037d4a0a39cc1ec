// SPDX-License-Identifier: Apache-2.0
// Runs under jitter, for people: percentiles with their intervals, and what the slow runs have in common.
#pragma once

#include <span>
#include <string>

#include "model/record/result.h"

namespace commfuse::reports {

/// A table at most 80 columns wide, a block a point; empty where no row has tails. Rows stand as in comparison_table.
std::string tails_table(std::span<const ResultRow> rows);

/// Who has the lowest p99 among the rows of one point that can win, and whether the samples are enough to say so.
/// Requires a row that can win and has tails.
std::string tail_verdict(std::span<const ResultRow> rows);

}  // namespace commfuse::reports
