// SPDX-License-Identifier: Apache-2.0
// The part of a fit's residual that differs between siblings, which are nodes of one fleet. A fit leaves a residual at
// every size. Most of it is the same on all nodes of the fleet, because it is the formula's error; only a share differs
// between siblings.
//
// The share is estimated from siblings: the mean of its distribution, given their medians and the error model of
// verdicts (evidence.h), where every share from 0 to 1 is equally likely a priori. docs/decisions/0077 states the
// reason.
#pragma once

#include <span>
#include <vector>

#include "model/expect/evidence.h"

namespace commfuse {

/// Shares of a fitted file's residual that differ between nodes and runs of its fleet.
struct SiblingShares {
  double bandwidth = 0.0;  ///< bandwidth-limited sizes
  double latency = 0.0;
};

/// Returns the shares estimated from siblings of two clusters. `commfuse-sim score --verdicts` prints them, and the
/// estimates without each of the clusters.
SiblingShares shipped_shares();

/// The shares at which likelihoods are computed: 0 to 1 in equal steps.
std::span<const double> tried_shares();

/// Logarithm of a likelihood at each of the tried shares.
using ShareLikelihood = std::vector<double>;

/// Returns ln of the likelihood of a healthy node's medians, over the halves with this limit; 0 without such halves.
double healthy_likelihood(std::span<const ClassHalf> halves, Limit limit);

/// Returns the mean share under the product of the likelihoods; without likelihoods, the mean of all tried shares.
/// Requires each likelihood to have one value per tried share.
double share_of(std::span<const ShareLikelihood> likelihoods);

}  // namespace commfuse
