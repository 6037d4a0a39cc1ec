// SPDX-License-Identifier: Apache-2.0
// Scaling efficiency: the gain from more ranks, for fixed work and for work proportional to the ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/units.h"

namespace commfuse {

enum class ScalingKind : std::uint8_t {
  strong,  ///< Fixed work (all tokens): ideally the time is inversely proportional to the ranks.
  weak     ///< Fixed tokens per rank: ideally the time is constant.
};

/// Fastest result at one number of ranks.
struct ScalingPoint {
  std::string setting;  ///< All other settings. Only points with equal strings are compared.
  std::int64_t ranks = 1;
  std::int64_t batch = 1;
  std::int64_t seq = 1;
  Duration time{};  ///< Above 0.
};

/// Scaling over a series of points, from the fewest ranks to the most.
struct Scaling {
  std::string setting;
  ScalingKind kind = ScalingKind::strong;
  ScalingPoint fewest_ranks;
  ScalingPoint max_ranks;
  /// Fraction of the ideal: 1 is perfect. Strong: time × ranks of `fewest_ranks` divided by time × ranks of
  /// `max_ranks`. Weak: the time of `fewest_ranks` divided by the time of `max_ranks`.
  double efficiency = 1.0;
};

/// Returns the scalings of all points. A strong scaling covers one batch and sequence length at several numbers of
/// ranks. A weak scaling covers settings without a strong scaling, if batch × seq is the same multiple of the ranks at
/// every point. Other settings yield no scaling, because their work is neither fixed nor proportional to the ranks.
std::vector<Scaling> scalings_of(std::span<const ScalingPoint> points);

}  // namespace commfuse
