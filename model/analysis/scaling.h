// SPDX-License-Identifier: Apache-2.0
// What more ranks bring, and whether the work stays or grows with them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/units.h"

namespace commfuse {

enum class ScalingKind : std::uint8_t {
  strong,  ///< The work is fixed, tokens and all: ideal is a time that falls as ranks rise.
  weak     ///< Tokens a rank are fixed: ideal is a time that stays.
};

/// The fastest of a point.
struct ScalingPoint {
  std::string setting;  ///< All else that was asked: only equal ones compare.
  std::int64_t ranks = 1;
  std::int64_t batch = 1;
  std::int64_t seq = 1;
  Duration time{};  ///< Above 0.
};

/// From the fewest ranks of a run of points to the most.
struct Scaling {
  std::string setting;
  ScalingKind kind = ScalingKind::strong;
  ScalingPoint fewest;
  ScalingPoint most;
  /// Of the ideal: strong, time x ranks of the fewest over that of the most; weak, the times alone.
  double efficiency = 1.0;
};

/// Strong: one a batch and sequence length with several counts of ranks. Weak: of settings without any of those, where
/// batch x seq is the same multiple of the ranks at every point. Nothing of other points: both change, neither by a
/// rule.
std::vector<Scaling> scalings_of(std::span<const ScalingPoint> points);

}  // namespace commfuse
