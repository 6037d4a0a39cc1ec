// SPDX-License-Identifier: Apache-2.0
// Result rows as the page tells them: point by point, and who is in front.
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
  std::span<const ResultRow> rows;        // as given; never empty
  std::vector<const ResultRow*> ranking;  // those with a result that can win, fastest first
  std::vector<const ResultRow*> front;    // the fastest, and those that tie with it

  /// The fastest of another strategy than the winner's; nullptr where there is none.
  [[nodiscard]] const ResultRow* next_strategy() const;
  [[nodiscard]] bool in_front(const ResultRow& row) const;
};

/// Rows of one point stand together.
std::vector<PointView> points_of(std::span<const ResultRow> rows, const VerdictRule& rule = {});

/// Runs of points that differ only in ranks and seq: what one map and one table show.
struct Setting {
  std::string title;  // "llama-3.1-70b mlp on h100-sxm, batch 1, bf16"
  std::span<const ResultRow> rows;
  std::vector<PointView> points;
};
std::vector<Setting> settings_of(std::span<const ResultRow> rows, const VerdictRule& rule = {});

/// The one with the most tokens, then ranks; nullptr where no point has a result.
const PointView* largest(const std::vector<PointView>& points);

/// How often each strategy wins, the most often first, by name where two win as often.
struct Wins {
  std::string strategy;
  std::size_t points = 0;
};
std::vector<Wins> wins_of(const std::vector<PointView>& points);

}  // namespace commfuse::reports
