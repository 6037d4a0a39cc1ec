// SPDX-License-Identifier: Apache-2.0
#include "sim/point/point_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "model/config_error.h"

namespace commfuse {

namespace {

std::size_t product_of(const std::vector<GridAxis>& axes, std::size_t limit) {
  std::size_t points = 1;
  for (const GridAxis& axis : axes) {
    points *= axis.steps.size();
    if (points > limit) {
      throw ConfigError(
          fmt::format("{}: with this axis there are more than {} points; take fewer values", axis.origin.where, limit));
    }
  }
  return points;
}

bool meets_all(const Settings& settings, const std::vector<GridConstraint>& constraints) {
  return std::all_of(constraints.begin(), constraints.end(), [&](const GridConstraint& entry) {
    try {
      return entry.constraint.holds(settings);
    } catch (const ConstraintError& error) {
      throw ConfigError(fmt::format("{}: {}", entry.place(error.column()), error.what()));
    }
  });
}

constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

}  // namespace

PointList::PointList(const Grid& grid, std::size_t limit) : grid_(grid), size_(product_of(grid.axes, limit)) {
  if (grid.constraints.empty()) {
    return;
  }
  PointCursor cursor(*this);
  std::vector<std::uint32_t> places;
  for (std::size_t place = 0; place < size_; ++place) {
    if (meets_all(cursor.at_place(place), grid.constraints)) {
      places.push_back(static_cast<std::uint32_t>(place));
    }
  }
  size_ = places.size();
  places_ = std::move(places);
}

PointCursor::PointCursor(const PointList& list)
    : list_(list), settings_(list.grid().settings), steps_(list.grid().axes.size(), nowhere) {}

const Settings& PointCursor::at_place(std::size_t place) {
  const std::vector<GridAxis>& axes = list_.grid().axes;
  for (std::size_t a = axes.size(); a-- > 0;) {
    const std::size_t step = place % axes[a].steps.size();
    place /= axes[a].steps.size();
    for (std::size_t f = 0; f < axes[a].fields.size() && step != steps_[a]; ++f) {
      settings_.put(*axes[a].fields[f], axes[a].steps[step][f]);
    }
    steps_[a] = step;
  }
  return settings_;
}

}  // namespace commfuse
