// SPDX-License-Identifier: Apache-2.0
#include "reports/point_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace commfuse::reports {

namespace {

bool same_point(const ResultRow& a, const ResultRow& b) {
  return a.model == b.model && a.hardware == b.hardware && a.scope == b.scope && a.ranks == b.ranks &&
         a.batch == b.batch && a.seq == b.seq && a.dtype == b.dtype;
}

}  // namespace

std::vector<Rows> rows_by_point(Rows rows) {
  std::vector<Rows> points;
  std::size_t first = 0;
  for (std::size_t i = 1; i <= rows.size(); ++i) {
    if (i == rows.size() || !same_point(rows[i], rows[first])) {
      points.push_back(rows.subspan(first, i - first));
      first = i;
    }
  }
  return points;
}

std::string label(const ResultRow& row) {
  return row.parameters.empty() ? row.strategy : fmt::format("{} ({})", row.strategy, row.parameters);
}

std::string short_label(const ResultRow& row, Rows rows) {
  const auto same =
      std::count_if(rows.begin(), rows.end(), [&](const ResultRow& r) { return r.strategy == row.strategy; });
  return same > 1 ? label(row) : row.strategy;
}

Unit::Unit(Rows rows) {
  Duration longest{};
  for (const ResultRow& row : rows) {
    longest = std::max(longest, row.analysis.critical.makespan);
  }
  in_milliseconds = longest >= std::chrono::milliseconds(10);
}

std::string Unit::text(Duration duration) const {
  const double us = to_microseconds(duration);
  return in_milliseconds ? fmt::format("{:.3f}", us / 1000.0) : fmt::format("{:.1f}", us);
}

}  // namespace commfuse::reports
