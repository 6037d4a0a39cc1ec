// SPDX-License-Identifier: Apache-2.0
// Range of times that are accepted from measurements of unknown origin.
#pragma once

namespace commfuse {

/// Range in microseconds, from one picosecond, the resolution of times, to the longest time of an op.
inline constexpr double shortest_measured_us = 1e-6;
inline constexpr double longest_measured_us = 1e11;

/// Returns true if the time is in range; false for NaN.
constexpr bool is_measured_time(double microseconds) {
  return microseconds >= shortest_measured_us && microseconds <= longest_measured_us;
}

}  // namespace commfuse
