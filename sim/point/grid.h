// SPDX-License-Identifier: Apache-2.0
// A grid of points: which they are, in the order they were asked for.
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

/// Points that a grid which is kept in memory may have before constraints.
inline constexpr std::size_t most_run_points = 1'000'000;

/// The points, in order. Throws ConfigError for more than a million before constraints, and where a constraint cannot
/// be worked out.
std::vector<Settings> points_of(const Grid& grid);

/// Throws the ConfigError of the first point that cannot be run.
void require_all_runnable(const std::vector<Settings>& points, const Library& library);
void require_all_runnable(const PointList& points, const Library& library);

}  // namespace commfuse
