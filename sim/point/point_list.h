// SPDX-License-Identifier: Apache-2.0
// The points of a grid by number. They are computed on demand: without constraints, a million points use no memory;
// with constraints, four bytes each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/point/grid.h"

namespace commfuse {

/// Largest number of points of a sweep, before constraints.
inline constexpr std::size_t max_sweep_points = 100'000'000;

/// Numbers the points from 0 in the order of the nested loop, without points that a constraint excludes. The grid must
/// outlive the list.
class PointList {
 public:
  /// Throws ConfigError for more than `limit` points before constraints, and if a constraint cannot be evaluated.
  PointList(const Grid& grid, std::size_t limit);

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const Grid& grid() const { return grid_; }

 private:
  friend class PointCursor;
  /// Returns the point's place in the whole nested loop.
  [[nodiscard]] std::size_t place_of(std::size_t point) const { return places_.empty() ? point : places_[point]; }

  const Grid& grid_;
  std::size_t size_ = 0;
  std::vector<std::uint32_t> places_;  // by point; empty if every place is a point
};

/// Moves from point to point and changes only the settings that differ. Use one cursor per thread; the list must
/// outlive it.
class PointCursor {
 public:
  explicit PointCursor(const PointList& list);
  /// The reference is valid until the next call. Requires point < size().
  const Settings& at(std::size_t point) { return at_place(list_.place_of(point)); }

 private:
  friend class PointList;
  const Settings& at_place(std::size_t place);

  const PointList& list_;
  Settings settings_;
  std::vector<std::size_t> steps_;  // by axis: the step that settings_ holds
};

}  // namespace commfuse
