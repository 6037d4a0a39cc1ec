// SPDX-License-Identifier: Apache-2.0
// Where a curve of diminishing returns bends, and which of many offers no other beats.
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

/// The point farthest from the chord between the first and the last, both axes scaled to the curve's own range; the
/// first on ties. Nothing where fewer than three points, or a straight or flat line, leave no bend. Requires ascending
/// x.
std::optional<std::size_t> knee_of(std::span<const CurvePoint> curve);

/// The least x at which y has reached `share` of its way from 0 to its last value, linear between points. Nothing where
/// even the last point has no value above 0. Requires ascending x, at least one point.
std::optional<double> plateau_of(std::span<const CurvePoint> curve, double share);

/// Points that no other is below in one of x and y and not above in the other; ascending in x. Of equal ones the first.
std::vector<std::size_t> pareto_of(std::span<const CurvePoint> points);

}  // namespace commfuse
