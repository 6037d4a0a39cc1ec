// SPDX-License-Identifier: Apache-2.0
// Many points on all cores, in the order they were asked for.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "model/record/result.h"
#include "sim/point/axis.h"
#include "sim/point/constraint.h"
#include "sim/point/request.h"

namespace commfuse {

struct GridConstraint {
  Constraint constraint;
  /// Where a column of the constraint stands, for messages: "sweep.yaml:9:5".
  std::function<std::string(std::size_t column)> place;
};

/// A nested loop over the axes, the first outermost, without the points that a constraint excludes.
struct Grid {
  Settings settings;
  std::vector<GridAxis> axes;
  std::vector<GridConstraint> constraints;
};

/// All models and machines that the grid names. Throws ConfigError with every mistake of every file.
Library library_of(const Grid& grid);

/// Whether its points are whole models. Throws ConfigError where layers stand among them.
bool plays_whole_models(const Grid& grid);

/// Throws ConfigError where layers stand among whole models.
void require_whole_models(const std::vector<Settings>& points);

/// The points, in order. Throws ConfigError for more than a million before constraints, and where a constraint cannot
/// be worked out.
std::vector<Settings> points_of(const Grid& grid);

/// Throws the ConfigError of the first point that cannot be run.
void require_all_runnable(const std::vector<Settings>& points, const Library& library);

struct GridOptions {
  int threads = 0;  ///< 0: all cores
  /// Called after every point, from any thread: whether it had a result.
  std::function<void(bool feasible)> finished;
  /// Set from outside: no further point is begun.
  const std::atomic<bool>* stop = nullptr;
};

/// Thrown when `stop` was set before the end.
struct Interrupted {};

/// The rows of each point, the same whatever the threads. A schedule or point that cannot be run is a row with its
/// reason.
std::vector<std::vector<ResultRow>> run_points(const std::vector<Settings>& points, const Library& library,
                                               const GridOptions& options);

}  // namespace commfuse
