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
  /// Called after every point, from any thread, with whether it had a result.
  std::function<void(bool feasible)> finished;
  /// Set from outside; then no further point begins.
  const std::atomic<bool>* stop = nullptr;
};

/// Thrown when `stop` was set before the end.
struct Interrupted {};

/// Returns the rows of each point, independent of the number of threads. A schedule or point that cannot run yields a
/// row with the reason.
std::vector<std::vector<ResultRow>> run_points(const std::vector<Settings>& points, const Library& library,
                                               const GridOptions& options);

/// Hands the rows of each point of a list to `take`, one call at a time, in the order of the points, and keeps none.
/// Whatever `take` throws comes out.
void run_points(const PointList& points, const Library& library, const GridOptions& options,
                const std::function<void(std::span<const ResultRow> rows)>& take);

}  // namespace commfuse
