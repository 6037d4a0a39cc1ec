// SPDX-License-Identifier: Apache-2.0
// Finds the bend in a curve of diminishing returns, and the Pareto-optimal points.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace commfuse {

struct CurvePoint {
  double x = 0.0;
  double y = 0.0;
};

/// Returns the index of the point farthest from the chord between the first and the last point, with both axes scaled
/// to the curve's own range; the first point on ties. Returns nullopt when there are fewer than three points or the
/// curve is straight or flat. Requires ascending x.
std::optional<std::size_t> knee_of(std::span<const CurvePoint> curve);

/// Returns the least x at which y reaches `share` of its last value, interpolated linearly between points; nullopt when
/// the last value is not above 0. Requires ascending x and at least one point.
std::optional<double> plateau_of(std::span<const CurvePoint> curve, double share);

/// Returns the indices of the Pareto-optimal points, ascending in x: every other point that is lower in x or y is
/// higher in the other. Of equal points only the first is returned.
std::vector<std::size_t> pareto_of(std::span<const CurvePoint> points);

}  // namespace commfuse
