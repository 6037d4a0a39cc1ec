// SPDX-License-Identifier: Apache-2.0
// Reads rows that state an observation in words: a value, and possibly more figures in the cell of the unit.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/score/row.h"
#include "sim/score/table.h"
#include "sim/score/tally.h"

namespace commfuse::score {

struct Figure {
  std::string name;     ///< "p90"; empty for a figure without a name.
  double factor = 1.0;  ///< 1.024 for 2.4 "pct", 1.093 for 1.093 "x".
};

/// Returns the figures of a value and its unit: (1.013, "x p50; 1.093 p90; 1.152 p99") yields p50 1.013, p90 1.093 and
/// p99 1.152. A part may also end with its number, which is then a factor: "max/median p99 1.29". Returns nothing if
/// `value` is not between 0 and 1e6, if the unit is neither "pct" nor "x", or if a later part of `unit` has no number.
std::optional<std::vector<Figure>> figures_in(double value, std::string_view unit);

/// A row that states an observation.
struct Observed {
  std::string_view what;
  std::string_view place;  ///< Machine of the observation, as the table names it.
  double value = 0.0;
  std::string_view unit;
};

/// Rows that no run predicts, identified by the beginning of their `what`.
struct UnpredictedRows {
  std::string_view begins;
  std::string_view why;
};

/// Returns why no run predicts a row; nothing if no entry of the list matches it.
std::optional<std::string_view> why_unpredicted(std::span<const UnpredictedRows> list, std::string_view what);

/// Calls `score` with every row that the tally accepts, except rows that were written down from memory, which are
/// skipped. `place` names the column with the machine of the observation.
void each_observation(const Table& table, std::string_view place, Tally& tally,
                      const std::function<void(Row& row, const Observed& observed)>& score);

}  // namespace commfuse::score
