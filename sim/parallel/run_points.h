// SPDX-License-Identifier: Apache-2.0
// Runs many points of layers on all cores.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <vector>

#include "model/record/result.h"
#include "sim/point/point_list.h"
#include "sim/point/request.h"

namespace commfuse {

struct GridOptions {
  int threads = 0;  ///< 0: all cores
  /// Called after every point, from any thread; `feasible` states whether the point has a result.
  std::function<void(bool feasible)> finished;
  /// Once the caller sets it, no further point starts.
  const std::atomic<bool>* stop = nullptr;
};

/// Thrown if `stop` is set before all points have run.
struct Interrupted {};

/// Returns the rows of each point, independent of the number of threads. A schedule or point that cannot run yields a
/// row with the reason.
std::vector<std::vector<ResultRow>> run_points(const std::vector<Settings>& points, const Library& library,
                                               const GridOptions& options);

/// Passes the rows of each point to `take`, one call at a time and in the order of the points. Does not keep the rows.
/// Exceptions from `take` propagate.
void run_points(const PointList& points, const Library& library, const GridOptions& options,
                const std::function<void(std::span<const ResultRow> rows)>& take);

}  // namespace commfuse
