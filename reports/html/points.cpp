// SPDX-License-Identifier: Apache-2.0
#include "reports/html/points.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "reports/figure/wording.h"
#include "reports/point_rows.h"

namespace commfuse::reports {

namespace {

/// Runs of neighbours that are the same.
std::vector<std::span<const ResultRow>> runs_of(std::span<const ResultRow> rows,
                                                bool (*same)(const ResultRow&, const ResultRow&)) {
  std::vector<std::span<const ResultRow>> runs;
  std::size_t first = 0;
  for (std::size_t i = 1; i <= rows.size(); ++i) {
    if (i == rows.size() || !same(rows[i], rows[first])) {
      runs.push_back(rows.subspan(first, i - first));
      first = i;
    }
  }
  return runs;
}

PointView view_of(std::span<const ResultRow> rows, const VerdictRule& rule) {
  PointVerdict verdict = point_verdict(rows, rule);
  const auto has_none = [](const ResultRow* row) { return !has_result(*row); };
  std::erase_if(verdict.ranking, has_none);
  std::erase_if(verdict.front, has_none);
  return {rows, std::move(verdict.ranking), std::move(verdict.front)};
}

/// What is asked beside what stands in a title always: ", interference none, launch stream".
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

std::vector<PointView> points_of(std::span<const ResultRow> rows, const VerdictRule& rule) {
  std::vector<PointView> points;
  for (const std::span<const ResultRow> run : runs_of(rows, same_point)) {
    points.push_back(view_of(run, rule));
  }
  return points;
}

std::vector<Setting> settings_of(std::span<const ResultRow> rows, const VerdictRule& rule) {
  std::vector<Setting> settings;
  for (const std::span<const ResultRow> run : runs_of(rows, same_but_for_axes)) {
    const ResultRow& row = run.front();
    settings.push_back({fmt::format("{} {} on {}, batch {}, {}{}", row.model, row.scope, machine_in_words(row),
                                    row.batch, row.dtype, unusual_in_words(row)),
                        run, points_of(run, rule)});
  }
  return settings;
}

const PointView* largest(const std::vector<PointView>& points) {
  const PointView* most = nullptr;
  const auto size = [](const PointView& point) {
    return std::pair(point.rows.front().batch * point.rows.front().seq, point.rows.front().ranks);
  };
  for (const PointView& point : points) {
    if (!point.ranking.empty() && (most == nullptr || size(point) > size(*most))) {
      most = &point;
    }
  }
  return most;
}

std::vector<Wins> wins_of(const std::vector<PointView>& points) {
  std::map<std::string, std::size_t> count;
  for (const PointView& point : points) {
    if (point.front.size() == 1) {
      ++count[point.front.front()->strategy];
    }
  }
  std::vector<Wins> wins;
  for (const auto& [strategy, number] : count) {
    wins.push_back({strategy, number});
  }
  std::stable_sort(wins.begin(), wins.end(), [](const Wins& a, const Wins& b) { return a.points > b.points; });
  return wins;
}

}  // namespace commfuse::reports
