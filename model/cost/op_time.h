// SPDX-License-Identifier: Apache-2.0
// Parts that cost formulas share: the final conversion to a Duration, the combination of times that mostly hide each
// other, and the share of a tensor that a cache still holds.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

#include "model/units.h"

namespace commfuse {

/// Longest time one op may take: keeps the sum over a whole program inside Duration.
inline constexpr double longest_op_seconds = 1e5;

/// Share of the L2 that still holds what the previous op wrote: a prior.
inline constexpr double cached_share_of_l2 = 0.6;

/// Nothing stays in a cache once the bytes between two uses exceed its capacity by this share of the capacity.
inline constexpr double spilled_share = 0.1;

/// Bytes that pass through a cache between two uses of a tensor.
struct CacheUse {
  double between = 0.0;
  double capacity = 0.0;  ///< Bytes of the cache.
};

/// Returns the share of the tensor that the cache still holds.
inline double share_kept(const CacheUse& use) {
  return use.capacity > 0.0 ? std::clamp(1.0 + (1.0 - use.between / use.capacity) / spilled_share, 0.0, 1.0) : 0.0;
}

/// Rounds to the nearest picosecond. Throws ConfigError when the op would take longer than `longest_op_seconds`: the
/// user's sizes or rates are off by orders of magnitude. `what` names the op, as in "a matrix product". Requires
/// seconds >= 0.
Duration op_time(double seconds, std::string_view what);

/// Returns (a^4 + b^4)^(1/4), in seconds: little more than the greater of the two. Requires at least one of them to be
/// above 0.
inline double root_of_fourths(double a, double b) {
  const double greater = std::max(a, b);
  const double ratio = std::min(a, b) / greater;
  const double square = ratio * ratio;
  return greater * std::sqrt(std::sqrt(1.0 + square * square));
}

}  // namespace commfuse
