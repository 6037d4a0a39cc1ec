// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/knee.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/check.h"

namespace commfuse {

std::optional<std::size_t> knee_of(std::span<const CurvePoint> curve) {
  constexpr double least_bend = 1e-3;  // share of the curve's range; a curve that bends less is straight
  if (curve.size() < 3) {
    return std::nullopt;
  }
  const CurvePoint& first = curve.front();
  const CurvePoint& last = curve.back();
  const double width = last.x - first.x;
  const double height = last.y - first.y;
  if (width <= 0.0 || height == 0.0) {
    return std::nullopt;
  }
  std::optional<std::size_t> knee;
  double farthest = least_bend;
  for (std::size_t i = 1; i + 1 < curve.size(); ++i) {
    const double distance = std::abs((curve[i].y - first.y) / height - (curve[i].x - first.x) / width);
    if (distance > farthest) {
      farthest = distance;
      knee = i;
    }
  }
  return knee;
}

std::optional<double> plateau_of(std::span<const CurvePoint> curve, double share) {
  check(!curve.empty(), "a curve has a point");
  const double wanted = share * curve.back().y;
  if (wanted <= 0.0) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < curve.size(); ++i) {
    if (curve[i].y >= wanted) {
      if (i == 0) {
        return curve[i].x;
      }
      const CurvePoint& before = curve[i - 1];
      return before.x + (curve[i].x - before.x) * (wanted - before.y) / (curve[i].y - before.y);
    }
  }
  return curve.back().x;
}

std::vector<std::size_t> pareto_of(std::span<const CurvePoint> points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return points[a].x < points[b].x || (points[a].x == points[b].x && points[a].y < points[b].y);
  });
  std::vector<std::size_t> best;
  for (const std::size_t candidate : order) {
    if (best.empty() || points[candidate].y < points[best.back()].y) {
      best.push_back(candidate);
    }
  }
  return best;
}

}  // namespace commfuse
