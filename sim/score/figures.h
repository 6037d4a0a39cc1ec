// SPDX-License-Identifier: Apache-2.0
// Reads rows that state an observation in words: a value, and perhaps more figures in the cell of its unit.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/score/row.h"
#include "sim/score/table.h"
#include "sim/score/tally.h"

namespace commfuse::score {

struct Figure {
  std::string name;     ///< "p90"; empty if the row gives one figure without a name.
  double factor = 1.0;  ///< 2.4 "pct" is 1.024, 1.093 "x" is itself.
};

/// Returns the figures of a value and its unit: (1.013, "x p50; 1.093 p90; 1.152 p99") is p50 1.013, p90 1.093,
/// p99 1.152. A part may also end in its number, which is then a factor: "max/median p99 1.29". Returns nothing if
/// the unit is neither "pct" nor "x", or a part has no number.
std::optional<std::vector<Figure>> figures_in(double value, std::string_view unit);

/// A row that states an observation.
struct Observed {
  std::string_view what;
  std::string_view place;  ///< Place of the observation: a machine, in words of the table.
  double value = 0.0;
  std::string_view unit;
};

/// Calls `score` with every row that the tally takes. Rows written down from memory are skipped with that reason.
/// `place` is the column with the place of the observation. Throws as Row does.
void each_observation(const Table& table, std::string_view place, Tally& tally,
                      const std::function<void(Row& row, const Observed& seen)>& score);

}  // namespace commfuse::score
