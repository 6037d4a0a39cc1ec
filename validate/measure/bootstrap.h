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

/// Returns the median of `times` divided by the median of `base`, with the percentile interval of the bootstrap (Efron
/// and Tibshirani 1993, chapter 13) from 2,000 resamples. Element n of each span is the time in round n. If both spans
/// have the same number of times, rounds are resampled for both together, so that a disturbance of a whole round does
/// not change the ratio; otherwise each span is resampled independently. Requires a time in each span, and times above
/// 0.
Ratio ratio_of_medians(std::span<const Duration> times, std::span<const Duration> base, std::uint64_t seed);

}  // namespace commfuse::validate
