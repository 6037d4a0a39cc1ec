// SPDX-License-Identifier: Apache-2.0
// What a file leaves of nodes that it was fitted to a sibling of. A fit leaves a residual on every size, most of it on
// all nodes of the fleet alike, because it is the formula's error. Only the rest differs between siblings.
#pragma once

#include <span>

#include "model/expect/evidence.h"

namespace commfuse {

/// Shares of such a file's residual that differ between nodes and runs of its fleet.
struct SiblingShares {
  double bandwidth = 0.0;  ///< of sizes that bandwidth limits
  double latency = 0.0;
};

/// Estimated by the rule below on siblings of six fleets: `commfuse-sim score --verdicts` prints it, and what it is
/// without each of them.
inline constexpr SiblingShares shipped_shares{.bandwidth = 0.5, .latency = 0.3};

/// Sums over medians of siblings, of which a share is estimated.
struct SiblingMoments {
  double excess = 0.0;    ///< sum of (median^2 - what other errors explain) / variance at share 1
  double residual = 0.0;  ///< sum of (variance at share 1 - what other errors explain) / variance at share 1

  SiblingMoments& operator+=(const SiblingMoments& other);
};

/// Moments of a node's medians with one limit, by its halves with a share of 0 and with a share of 1. Requires halves
/// of the same rows.
SiblingMoments moments_of(std::span<const ClassHalf> without, std::span<const ClassHalf> with, Limit limit);

/// The moments as those of one node: fleets count alike, however many pairs of nodes they have. Requires pairs > 0.
SiblingMoments mean_of(const SiblingMoments& moments, std::size_t pairs);

/// The share at which the squared medians are on average what the errors say, from 0 to 1; 1 without moments.
double share_of(const SiblingMoments& moments);

}  // namespace commfuse
