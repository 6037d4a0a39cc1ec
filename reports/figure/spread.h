// SPDX-License-Identifier: Apache-2.0
// Some of many, evenly spread: what a figure or a table for people can show.
#pragma once

#include <cstddef>
#include <vector>

namespace commfuse::reports {

/// Places from 0 to count - 1: all, or `most` of them with the first and the last. Requires most >= 2.
inline std::vector<std::size_t> spread(std::size_t count, std::size_t most) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < (count < most ? count : most); ++i) {
    places.push_back(count <= most ? i : i * (count - 1) / (most - 1));
  }
  return places;
}

/// Columns and rows of a map at most.
inline constexpr std::size_t most_map_values = 64;

}  // namespace commfuse::reports
