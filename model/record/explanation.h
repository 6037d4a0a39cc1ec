// SPDX-License-Identifier: Apache-2.0
// One prediction with its parts: the cost of each op and its reason, and the sensitivity of the whole.
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

/// Ops of a rank that share a shape.
struct ExplainedOp {
  std::string shape;  ///< for example "GEMM 4K x 7K x 8K"
  std::string how;    ///< for example "tile 128 x 256, 26 waves, the last 48% full; power sets the time"
  PathKind kind = PathKind::essential;
  std::size_t count = 0;  ///< on the critical rank
  Duration shortest{};    ///< price of the shortest op
  Duration longest{};
  Duration together{};
};

/// Sensitivity to a parameter, or to the fit residual of a shape.
struct Hold {
  std::string name;                      ///< "link.peer.rate", or for a shape "GEMM 4K x 7K x 8K"
  std::optional<Provenance> provenance;  ///< provenance of a parameter
  std::string source;
  std::optional<double> elasticity;  ///< change of ln(makespan) / 0.01, for a parameter that is 1% higher
  double standard_error = 0.0;       ///< relative, of the parameter or of the shape's price
  double effect = 0.0;               ///< change of ln(makespan) per standard error
};

struct Explanation {
  ResultRow row;
  std::string verdict;                         ///< verdict among the requested strategies; empty for a single one
  std::vector<ExplainedOp> ops;                ///< the largest total time first
  std::array<Duration, path_kinds> on_path{};  ///< the critical path by kind; the sum is the makespan
  std::vector<Hold> holds;                     ///< the largest effect first, then the largest elasticity
};

}  // namespace commfuse
