// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/left_out.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/config_error.h"
#include "model/strategies/strategies.h"

namespace commfuse::sim {

namespace {

/// Returns whether the row is of a generated schedule. A row of contradictory settings has no strategy.
bool is_of_strategy(const ResultRow& row) { return row.implements.empty() && find_strategy(row.strategy) != nullptr; }

}  // namespace

std::vector<ResultRow> LeftOut::kept(std::span<const ResultRow> point_rows) {
  const bool has_strategy =
      std::ranges::any_of(point_rows, [](const ResultRow& row) { return row.feasible() && is_of_strategy(row); });
  std::vector<ResultRow> rows;
  for (const ResultRow& row : point_rows) {
    if (row.feasible()) {
      rows.push_back(row);
      continue;
    }
    if (names_strategies_ || !has_strategy || !is_of_strategy(row)) {
      throw ConfigError(row.reason);
    }
    Reason& reason = reasons_.try_emplace(row.strategy, Reason{.text = row.reason}).first->second;
    ++reason.points;
  }
  return rows;
}

std::string LeftOut::in_words() const {
  std::string text;
  for (const auto& [strategy, reason] : reasons_) {
    text += fmt::format("note: {} is not compared{}: {}\n", strategy,
                        reason.points == 1 ? "" : fmt::format(" at {} points", reason.points), reason.text);
  }
  return text;
}

}  // namespace commfuse::sim
