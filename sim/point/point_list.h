// SPDX-License-Identifier: Apache-2.0
// The points of a grid by their number, without a list of them: a million cost no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/point/grid.h"

namespace commfuse {

/// Points a sweep may have before constraints.
inline constexpr std::size_t most_sweep_points = 100'000'000;

/// Numbered from 0 in the order of the nested loop, without those that a constraint excludes. The grid outlives it.
class PointList {
 public:
  /// Throws ConfigError for more than `most` points before constraints, and where a constraint cannot be worked out.
  PointList(const Grid& grid, std::size_t most);

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const Grid& grid() const { return grid_; }

 private:
  friend class PointCursor;
  /// In the whole nested loop.
  [[nodiscard]] std::size_t place_of(std::size_t point) const { return places_.empty() ? point : places_[point]; }

  const Grid& grid_;
  std::size_t size_ = 0;
  std::vector<std::uint32_t> places_;  // by point; empty where all places are points
};

/// Goes from point to point and changes only what differs. One a thread; the list outlives it.
class PointCursor {
 public:
  explicit PointCursor(const PointList& list);
  /// Holds until the next call. Requires point < size().
  const Settings& at(std::size_t point) { return at_place(list_.place_of(point)); }

 private:
  friend class PointList;
  const Settings& at_place(std::size_t place);

  const PointList& list_;
  Settings settings_;
  std::vector<std::size_t> steps_;  // by axis: where settings_ stands
};

}  // namespace commfuse
