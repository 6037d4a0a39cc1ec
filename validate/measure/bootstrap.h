// SPDX-License-Identifier: Apache-2.0
// Estimates by how much one schedule is faster than another, with a confidence interval.
#pragma once

#include <cstdint>
#include <span>

#include "model/units.h"

namespace commfuse::validate {

/// A number with its 95% confidence interval.
struct Ratio {
  double value = 1.0;
  double low = 1.0;
  double high = 1.0;
};

/// Returns the median of `times` over the median of `base`, with the percentile interval of the bootstrap (Efron and
/// Tibshirani 1993, chapter 13): 2,000 times, as many rounds as there were are drawn with replacement. The n-th time of
/// both is of round n, and a round is drawn for both at once, so that a disturbance of a whole round counts against
/// neither; where their numbers differ each is drawn by itself. Requires a time of each, and times above 0.
Ratio ratio_of_medians(std::span<const Duration> times, std::span<const Duration> base, std::uint64_t seed);

}  // namespace commfuse::validate
