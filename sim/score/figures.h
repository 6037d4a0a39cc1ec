// SPDX-License-Identifier: Apache-2.0
// The figures of a row that states an observation in words: a value, and in the cell of its unit perhaps more of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace commfuse::score {

struct Figure {
  std::string name;     ///< "p90"; empty where the row gives one figure without a name.
  double factor = 1.0;  ///< 2.4 "pct" is 1.024, 1.093 "x" is itself.
};

/// Of a value and a unit: (1.013, "x p50; 1.093 p90; 1.152 p99") is p50 1.013, p90 1.093, p99 1.152. A part may also
/// end in its number, which is then a factor: "max/median p99 1.29". Nothing where the unit is neither "pct" nor "x",
/// or a part has no number.
std::optional<std::vector<Figure>> figures_in(double value, std::string_view unit);

}  // namespace commfuse::score
