// SPDX-License-Identifier: Apache-2.0
// Many points on all cores, in the order they were asked for.
#pragma once

#include <vector>

#include "model/record/result.h"
#include "sim/request.h"

namespace commfuse {

/// All rows of all points. Same rows whatever `threads`; 0 means all cores. Throws ConfigError when a schedule does not
/// divide a point's tokens.
std::vector<ResultRow> run_points(const std::vector<Point>& points, const StrategyRequest& strategies, int threads);

ResultRow row_of(const Point& point, const Prediction& prediction);

}  // namespace commfuse
