// SPDX-License-Identifier: Apache-2.0
// One prediction taken apart: what each op costs and why, and what the whole hangs on.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "model/analysis/critical_path.h"
#include "model/hardware/parameter.h"
#include "model/record/result.h"
#include "model/units.h"

namespace commfuse {

/// The ops of a rank that share a shape.
struct ExplainedOp {
  std::string shape;  ///< "product 4K x 7K x 8K"
  std::string how;    ///< "tile 128 x 256, 26 waves, the last 48% full; power sets the time"
  PathKind kind = PathKind::essential;
  std::size_t count = 0;  ///< On the critical rank.
  Duration shortest{};    ///< Of one, as priced.
  Duration longest{};
  Duration together{};
};

/// Sensitivity: a parameter, or what the fit of a shape leaves.
struct Hold {
  std::string name;                      ///< "link.peer.rate"; of a shape "product 4K x 7K x 8K"
  std::optional<Provenance> provenance;  ///< Of a parameter.
  std::string source;
  std::optional<double> elasticity;  ///< Change of ln(makespan) by a 1 % higher parameter, in units of that 1 %.
  double standard_error = 0.0;       ///< Relative, of the parameter or of the shape's price.
  double effect = 0.0;               ///< On ln(makespan), of one standard error.
};

struct Explanation {
  ResultRow row;
  std::string verdict;                         ///< Among the strategies that were asked for; empty for one.
  std::vector<ExplainedOp> ops;                ///< The longest together first.
  std::array<Duration, path_kinds> on_path{};  ///< The critical path by kind; the sum is the makespan.
  std::vector<Hold> holds;                     ///< The largest effect first, then the largest elasticity.
};

}  // namespace commfuse
