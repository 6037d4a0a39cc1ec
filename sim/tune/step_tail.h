// SPDX-License-Identifier: Apache-2.0
// Percentiles of a whole step under jitter, composed from its sites run many times.
//
//   step = T(f) + S        f: how slow the slowest of all GPUs is, one draw a machine, F_1(f)^gpus (step.h)
//                          S: what kernels and transfers stray in the runs of all sites; every group of tensor ranks
//                          has
//                             its own, nearly normal as it is a sum of very many, and the slowest counts
//
//   P(step <= t) = integral over f of Phi((t - T(f) - mean S) / sd S)^groups
//
// The runs of a site are of a group whose slowest rank is the slowest GPU at its p99, the others as they should be. T
// is taken to grow by the same for every percent that kernels are slower. What strays outside sites is left out.
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
  double strays = 0.0;     ///< Seconds that one takes longer in the mean than the step's time says.
  double deviation = 0.0;  ///< Of one, seconds.
};

struct StepSpread {
  std::int64_t gpus = 1;
  double rank_sigma = 0.0;
  std::int64_t groups = 1;    ///< Of tensor ranks.
  Duration alike{};           ///< T(1).
  double per_slowdown = 0.0;  ///< Seconds that the step takes longer where kernels take twice as long.
  double strays = 0.0;        ///< Mean of S, seconds.
  double variance = 0.0;      ///< Of S in one group, seconds squared.

  void add(const SiteRuns& site);
};

StepTail tail_of(const StepSpread& spread);

/// How many standard deviations of S stand behind the mean in the p99, if that alone strays: the slowest of so many
/// groups. Requires groups >= 1.
double deviations_at_p99(std::int64_t groups);

}  // namespace commfuse
