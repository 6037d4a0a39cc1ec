// SPDX-License-Identifier: Apache-2.0
// Chooses a few of many values, evenly spread, for figures and tables that people read.
#pragma once

#include <cstddef>
#include <vector>

namespace commfuse::reports {

/// Returns indices from 0 to count - 1: all, or `at_most` of them including the first and the last. Requires at_most >=
/// 2.
inline std::vector<std::size_t> spread(std::size_t count, std::size_t at_most) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < (count < at_most ? count : at_most); ++i) {
    places.push_back(count <= at_most ? i : i * (count - 1) / (at_most - 1));
  }
  return places;
}

/// Largest number of columns and rows of a map.
inline constexpr std::size_t most_map_values = 64;

}  // namespace commfuse::reports
