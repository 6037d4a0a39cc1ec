// SPDX-License-Identifier: Apache-2.0
// Scaling efficiency: the gain from more ranks, for fixed work and for work that grows with the ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/units.h"

namespace commfuse {

enum class ScalingKind : std::uint8_t {
  strong,  ///< Fixed work, all tokens: ideally the time falls as ranks rise.
  weak     ///< Fixed tokens per rank: ideally the time stays.
};

/// Fastest result at one count of ranks.
struct ScalingPoint {
  std::string setting;  ///< All other settings; only points with equal ones compare.
  std::int64_t ranks = 1;
  std::int64_t batch = 1;
  std::int64_t seq = 1;
  Duration time{};  ///< Above 0.
};

/// Scaling over a run of points, from the fewest ranks to the most.
struct Scaling {
  std::string setting;
  ScalingKind kind = ScalingKind::strong;
  ScalingPoint fewest_ranks;
  ScalingPoint most_ranks;
  /// Share of the ideal. Strong: time × ranks of the fewest over that of the most. Weak: the ratio of the times alone.
  double efficiency = 1.0;
};

/// Returns the scalings of all points. A strong scaling covers one batch and sequence length with several counts of
/// ranks. A weak one covers settings without a strong one, when batch × seq is the same multiple of the ranks at every
/// point. Other settings give none, because work and ranks change by no common rule.
std::vector<Scaling> scalings_of(std::span<const ScalingPoint> points);

}  // namespace commfuse
