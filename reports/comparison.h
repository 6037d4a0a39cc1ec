// SPDX-License-Identifier: Apache-2.0
// Strategies side by side, for people: who wins at each point, and where each one's time goes.
#pragma once

#include <span>
#include <string>

#include "model/record/result.h"

namespace commfuse::reports {

/// Below this difference of makespans the model does not name a winner.
inline constexpr double too_close = 0.02;

/// False for a bound beside results of the same point that are none.
bool can_win(const ResultRow& row, std::span<const ResultRow> rows);

/// Who wins among the rows of one point that can, in one sentence, and then how far below a bound is. Requires at
/// least one row.
std::string verdict(std::span<const ResultRow> rows);

/// A table at most 80 columns wide. Rows of one point (model, hardware, scope, ranks, batch, seq, dtype) stand together
/// in `rows` and become one block, with its verdict; settings that all rows share stand once above.
std::string comparison_table(std::span<const ResultRow> rows);

/// How many points each strategy wins, and how many are too close to call; one sentence. Empty for fewer than two
/// points.
std::string summary(std::span<const ResultRow> rows);

}  // namespace commfuse::reports
