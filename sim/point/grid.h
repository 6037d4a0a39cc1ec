// SPDX-License-Identifier: Apache-2.0
// A grid of points, in the order of its axes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/record/result.h"
#include "sim/point/axis.h"
#include "sim/point/constraint.h"
#include "sim/point/request.h"

namespace commfuse {

class PointList;

struct GridConstraint {
  Constraint constraint;
  /// Returns the place in the file, for messages, of a column of the constraint: "sweep.yaml:9:5".
  std::function<std::string(std::size_t column)> place;
};

/// A nested loop over the axes, the first axis outermost, without the points that a constraint excludes.
struct Grid {
  Settings settings;
  std::vector<GridAxis> axes;
  std::vector<GridConstraint> constraints;
};

/// Loads all models, machines, jitters, faults and implementations that the grid names. Throws ConfigError with every
/// mistake in every file.
Library library_of(const Grid& grid);

/// Returns true if all points of the grid are whole models, false if all are layers. Throws ConfigError for a mixture.
bool has_whole_models(const Grid& grid);

/// Throws ConfigError if a point is a layer.
void require_whole_models(const std::vector<Settings>& points);

/// Largest number of points, before constraints, of a grid that is kept in memory.
inline constexpr std::size_t max_run_points = 1'000'000;

/// Returns the points, in order. Throws ConfigError if the grid has more than max_run_points before constraints, or if
/// a constraint cannot be evaluated.
std::vector<Settings> points_of(const Grid& grid);

/// Throws the ConfigError of the first point that cannot be run.
void require_all_runnable(const std::vector<Settings>& points, const Library& library);
void require_all_runnable(const PointList& points, const Library& library);

}  // namespace commfuse
