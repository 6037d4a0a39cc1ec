// SPDX-License-Identifier: Apache-2.0
#include "reports/html/points.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reports/figure/wording.h"
#include "reports/point_rows.h"

namespace commfuse::reports {

namespace {

/// Names the settings that a title omits and that are not the usual ones: ", interference none, launch stream".
std::string unusual_in_words(const ResultRow& row) {
  std::string text;
  for (const std::string& words : unusual(row)) {
    text += ", " + words;
  }
  return text;
}

}  // namespace

const ResultRow* PointView::next_strategy() const {
  for (const ResultRow* row : ranking) {
    if (row->strategy != ranking.front()->strategy) {
      return row;
    }
  }
  return nullptr;
}

bool PointView::in_front(const ResultRow& row) const {
  return std::find(front.begin(), front.end(), &row) != front.end();
}

PointView view_of(std::span<const ResultRow> rows, const VerdictRule& rule) {
  PointVerdict verdict = point_verdict(rows, rule);
  const auto has_none = [](const ResultRow* row) { return !has_result(*row); };
  std::erase_if(verdict.ranking, has_none);
  std::erase_if(verdict.front, has_none);
  return {rows, std::move(verdict.ranking), std::move(verdict.front)};
}

std::vector<PointView> points_of(std::span<const ResultRow> rows, const VerdictRule& rule) {
  std::vector<PointView> points;
  for (const Rows point : rows_by_point(rows)) {
    points.push_back(view_of(point, rule));
  }
  return points;
}

std::string setting_title(const ResultRow& row) {
  return fmt::format("{} {} on {}, batch {}, {}{}", row.model, row.scope, machine_in_words(row), row.batch, row.dtype,
                     unusual_in_words(row));
}

}  // namespace commfuse::reports
