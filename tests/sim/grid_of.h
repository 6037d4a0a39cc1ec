// SPDX-License-Identifier: Apache-2.0
// Parses settings and grids of points, which are written as for --set and --axis.
#pragma once

#include <string>
#include <vector>

#include "model/config/resolver.h"
#include "sim/point/grid.h"

namespace commfuse::test {

/// Returns the settings of "key=value" strings; other settings have their defaults.
inline Settings settings_of(const std::vector<std::string>& sets) {
  Resolver resolver;
  for (const std::string& set : sets) {
    resolver.read_set(set);
  }
  return resolver.finish();
}

/// Returns the grid of these settings and of axes such as "ranks=2,4".
inline Grid grid_of(const std::vector<std::string>& sets, const std::vector<std::string>& axes = {}) {
  Grid grid{.settings = settings_of(sets)};
  for (const std::string& axis : axes) {
    grid.axes.push_back(parse_axis(axis));
  }
  return grid;
}

}  // namespace commfuse::test
