// SPDX-License-Identifier: Apache-2.0
// Chooses a few evenly spaced values out of many, for figures and tables that people read.
#pragma once

#include <cstddef>
#include <vector>

namespace commfuse::reports {

/// The number of values, and how many of them to keep.
struct SpreadOver {
  std::size_t count = 0;
  std::size_t kept = 2;  ///< At least 1.
};

/// Returns the indices of the kept values: all from 0 to count - 1, or `kept` of them including the first and the last.
/// A single kept value is the first.
inline std::vector<std::size_t> spread(const SpreadOver& over) {
  const auto [count, kept] = over;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < (count < kept ? count : kept); ++i) {
    indices.push_back(count <= kept || i == 0 ? i : i * (count - 1) / (kept - 1));
  }
  return indices;
}

/// Largest number of values that a map shows on each axis.
inline constexpr std::size_t max_map_values = 64;

}  // namespace commfuse::reports
