// SPDX-License-Identifier: Apache-2.0
// What many samples of one time say, and how surely: percentiles and the mean with 95 % confidence intervals.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "model/units.h"

namespace commfuse {

/// Both ends included.
struct TimeRange {
  Duration low{};
  Duration high{};
  friend bool operator==(const TimeRange&, const TimeRange&) = default;
};

/// A number drawn from a sample, and where the true one lies with 95 % confidence; no range: the sample is too small to
/// say.
struct Estimate {
  Duration value{};
  std::optional<TimeRange> range;
  friend bool operator==(const Estimate&, const Estimate&) = default;
};

/// How many of `samples` sorted values, the smallest first, it takes to reach a percentile: the k of the k-th smallest.
/// The least k of which k / samples >= per_mille / 1000. Requires samples >= 1 and 1 <= per_mille <= 1000.
std::size_t order_of(std::size_t samples, int per_mille);

/// The percentile is a sample, the order_of()-th smallest. Its range runs between two samples, by order statistics: of
/// n samples the number below the true percentile is binomial, whatever their distribution, and either end is as near
/// as it can be while the true percentile lies beyond it with at most 2.5 %. Nothing when an end would have to lie
/// beyond the smallest or the largest sample. (Exact: a sum of binomial probabilities, no normal approximation; see
/// Hahn and Meeker, Statistical Intervals, 5.2.) Requires sorted samples, at least one.
Estimate percentile(std::span<const Duration> sorted, int per_mille);

/// To the nearest picosecond; its range is Student's, mean +- t s / sqrt(n). Nothing for a single sample. Where stalls
/// are rare and long the range is too narrow until the sample holds some. Requires at least one.
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

/// Requires at least one sample, in any order.
Percentiles percentiles_of(std::vector<Duration> samples);

}  // namespace commfuse
