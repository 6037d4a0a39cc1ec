// SPDX-License-Identifier: Apache-2.0
// The part of a fit's residual that differs between siblings: nodes of one fleet. A fit leaves a residual on every
// size, most of it on all nodes of the fleet alike, because it is the formula's error. Only a share of it differs
// between siblings.
//
// The share is estimated from siblings: the mean of its distribution, given their medians and the error model of
// verdicts (evidence.h), where every share from 0 to 1 is as likely before. docs/decisions/0077 says why.
#pragma once

#include <span>
#include <vector>

#include "model/expect/evidence.h"

namespace commfuse {

/// Shares of such a file's residual that differ between nodes and runs of its fleet.
struct SiblingShares {
  double bandwidth = 0.0;  ///< sizes that bandwidth limits
  double latency = 0.0;
};

/// Estimated on siblings of two clusters: `commfuse-sim score --verdicts` prints it, and what it is without each of
/// them.
SiblingShares shipped_shares();

/// The shares at which likelihoods are computed: 0 to 1 in equal steps.
std::span<const double> tried_shares();

/// ln of a likelihood at each of the tried shares.
using ShareLikelihood = std::vector<double>;

/// Returns ln of the likelihood of a node's medians with one limit where nothing is wrong with the node.
double healthy_likelihood(std::span<const ClassHalf> halves, Limit limit);

/// Returns the mean share, given the product of likelihoods. Requires likelihoods at the tried shares; without any, the
/// mean is that of all shares.
double share_of(std::span<const ShareLikelihood> likelihoods);

}  // namespace commfuse
