// SPDX-License-Identifier: Apache-2.0
// Percentiles of a whole step under jitter, composed from many runs of its sites.
//
//   step = T(f) + S
//   f: slowdown of the slowest of all GPUs, one draw per machine, distributed as F_1(f)^gpus (group_link.h)
//   S: jitter of kernels and transfers in the runs of all sites
//
// Every group of tensor ranks has its own S, which is nearly normal because it sums very many draws. The slowest group
// determines the time.
//
//   P(step <= t) = integral over f of Phi((t - T(f) - mean S) / sd S)^groups
//
// The runs of a site are sampled on a group in which one rank is the slowest GPU at its p99 and the others have their
// nominal speed. T is assumed to grow linearly with the slowdown of kernels. Jitter outside sites is ignored.
#pragma once

#include <cstdint>

#include "model/units.h"

namespace commfuse {

struct StepTail {
  Duration mean{};
  Duration p50{};
  Duration p95{};
  Duration p99{};
};

/// The runs of a site in one step.
struct SiteRuns {
  std::int64_t runs = 0;
  double excess = 0.0;     ///< Seconds by which the mean run exceeds the run in T, which has no jitter from run to run.
  double deviation = 0.0;  ///< Standard deviation of one run, seconds.
};

struct StepSpread {
  std::int64_t gpus = 1;
  double rank_sigma = 0.0;
  std::int64_t groups = 1;    ///< Number of groups of tensor ranks.
  Duration equal_gpus{};      ///< T(1).
  double per_slowdown = 0.0;  ///< Additional seconds of the step if kernels take twice as long: the slope of T.
  double excess = 0.0;        ///< Mean of S, seconds.
  double variance = 0.0;      ///< Variance of S in one group, seconds squared.

  void add(const SiteRuns& site);
};

StepTail tail_of(const StepSpread& spread);

/// Returns how many standard deviations the slowest group's S is above its mean at the p99, if only S varies. Requires
/// groups >= 1.
double deviations_at_p99(std::int64_t groups);

}  // namespace commfuse
