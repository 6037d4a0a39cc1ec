// SPDX-License-Identifier: Apache-2.0
// The range of times that a measurement from an unknown source may state.
#pragma once

namespace commfuse {

/// In microseconds: one picosecond, the least that times are counted in, to the longest time of an op.
inline constexpr double shortest_measured_us = 1e-6;
inline constexpr double longest_measured_us = 1e11;

/// False also for text that is not a number.
constexpr bool is_measured_time(double microseconds) {
  return microseconds >= shortest_measured_us && microseconds <= longest_measured_us;
}

}  // namespace commfuse
