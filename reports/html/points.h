// SPDX-License-Identifier: Apache-2.0
// Result rows grouped by point, with the winner or the rows that tie.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/analysis/verdict.h"
#include "model/record/result.h"

namespace commfuse::reports {

/// The rows of one point.
struct PointView {
  std::span<const ResultRow> rows;        // rows in the given order; never empty
  std::vector<const ResultRow*> ranking;  // rows with a result that can win, fastest first
  std::vector<const ResultRow*> front;    // the fastest row, and rows that tie with it

  /// Returns the fastest row whose strategy differs from the strategy of ranking.front(); nullptr if there is none.
  [[nodiscard]] const ResultRow* next_strategy() const;
  [[nodiscard]] bool in_front(const ResultRow& row) const;
};

PointView view_of(std::span<const ResultRow> rows, const VerdictRule& rule = {});
/// Requires that rows of one point are adjacent.
std::vector<PointView> points_of(std::span<const ResultRow> rows, const VerdictRule& rule = {});

/// Returns the title of all points that differ only in axes: "llama-3.1-70b mlp on h100-sxm, batch 1, bf16".
std::string setting_title(const ResultRow& row);

}  // namespace commfuse::reports
