// SPDX-License-Identifier: Apache-2.0
#include "reports/point_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

namespace commfuse::reports {

namespace {

bool same_point(const ResultRow& a, const ResultRow& b) {
  return a.model == b.model && a.hardware == b.hardware && a.link_bandwidth == b.link_bandwidth &&
         a.network_bandwidth == b.network_bandwidth && a.scope == b.scope && a.ranks == b.ranks && a.batch == b.batch &&
         a.seq == b.seq && a.dtype == b.dtype;
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

std::string sure_in_words(const ResultRow& winner) {
  if (!winner.win_probability) {
    return {};
  }
  constexpr double most = 0.995;  // What is left out of the model is no smaller.
  const double percent = 100.0 * *winner.win_probability;
  return *winner.win_probability >= most ? std::string{" (over 99% sure)"} : fmt::format(" ({:.0f}% sure)", percent);
}

std::vector<std::string> unusual(const ResultRow& row) {
  std::vector<std::string> words;
  if (row.interference != "static" || row.launch != "stream") {
    words.push_back(fmt::format("interference {}, launch {}", row.interference, row.launch));
  }
  if (row.attention_kernel == "unfused") {
    words.emplace_back("attention kernel unfused");
  }
  if (!row.faults.empty() && row.faults != "none") {
    words.push_back(fmt::format("faults {}", row.faults));
  }
  return words;
}

std::string errors_in_words(Rows rows) {
  std::optional<std::pair<double, double>> range;
  for (const ResultRow& row : rows) {
    if (row.feasible() && row.makespan_error) {
      const double percent = 100.0 * *row.makespan_error;
      range = range ? std::pair{std::min(range->first, percent), std::max(range->second, percent)}
                    : std::pair{percent, percent};
    }
  }
  if (!range) {
    return {};
  }
  const std::string least = fmt::format("{:.1f}", range->first);
  const std::string most = fmt::format("{:.1f}", range->second);
  return fmt::format("One standard error of a time: {}{}%.", least == most ? "" : least + " to ", most);
}

std::vector<std::string> warnings_of(Rows rows) {
  constexpr std::string_view between = "; ";
  std::vector<std::string> all;
  for (const ResultRow& row : rows) {
    for (std::string_view rest = row.warnings; !rest.empty();) {
      const std::size_t end = std::min(rest.find(between), rest.size());
      const std::string one{rest.substr(0, end)};
      rest.remove_prefix(std::min(end + between.size(), rest.size()));
      if (std::find(all.begin(), all.end(), one) == all.end()) {
        all.push_back(one);
      }
    }
  }
  return all;
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
