// SPDX-License-Identifier: Apache-2.0
// Percentiles and the mean of many samples of one time, with 95% confidence intervals.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "model/units.h"

namespace commfuse {

/// Closed interval.
struct TimeRange {
  Duration low{};
  Duration high{};
  friend bool operator==(const TimeRange&, const TimeRange&) = default;
};

/// A time estimated from a sample, and the range that contains the true value with 95% confidence. `range` is empty
/// when the sample is too small.
struct Estimate {
  Duration value{};
  std::optional<TimeRange> range;
  friend bool operator==(const Estimate&, const Estimate&) = default;
};

/// Returns k such that the k-th smallest of `samples` values is the percentile: the least k with k / samples >=
/// per_mille / 1000. Requires samples >= 1 and 1 <= per_mille <= 1000.
std::size_t order_of(std::size_t samples, int per_mille);

/// Returns the percentile: the order_of()-th smallest sample. Its range extends between two samples, by order
/// statistics: whatever the distribution of n samples, the number of samples below the true percentile is binomial.
/// Each end is the closest for which the true percentile is beyond it with a probability of at most 2.5%. There is no
/// range when an end would be beyond the smallest or the largest sample. The range is exact: it uses sums of binomial
/// probabilities, not a normal approximation (Hahn and Meeker, Statistical Intervals, 5.2). Requires `sorted` to be
/// sorted and not empty.
Estimate percentile(std::span<const Duration> sorted, int per_mille);

/// Returns the mean to the nearest picosecond, with Student's range, mean +- t s / sqrt(n). A single sample has no
/// range. When stalls are rare and long, the range is too narrow until the sample contains some. Requires at least one
/// sample.
Estimate mean(std::span<const Duration> samples);

struct Percentiles {
  std::size_t samples = 0;
  Estimate mean;
  Estimate p50;
  Estimate p95;
  Estimate p99;
  Estimate p99_9;
  friend bool operator==(const Percentiles&, const Percentiles&) = default;
};

/// Returns the mean and all percentiles that results contain. Requires at least one sample, in any order.
Percentiles percentiles_of(std::vector<Duration> samples);

}  // namespace commfuse
