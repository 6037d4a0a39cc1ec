// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/percentiles.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "model/check.h"

namespace commfuse {

namespace {

constexpr double beyond_an_end = 0.025;  // of a range of 95 %

using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
using Binomial = boost::math::binomial_distribution<double, Policy>;

/// The first of the numbers from..to-1 of which `holds` is true, which stays so from there on; else `to`.
template <class Holds>
std::size_t first_of(std::size_t from, std::size_t to, const Holds& holds) {
  while (from < to) {
    const std::size_t middle = from + (to - from) / 2;
    if (holds(middle)) {
      to = middle;
    } else {
      from = middle + 1;
    }
  }
  return from;
}

}  // namespace

std::size_t order_of(std::size_t samples, int per_mille) {
  check(samples >= 1 && per_mille >= 1 && per_mille <= 1000, "a percentile lies inside a sample");
  return (samples * static_cast<std::size_t>(per_mille) + 999) / 1000;
}

Estimate percentile(std::span<const Duration> sorted, int per_mille) {
  const std::size_t count = sorted.size();
  Estimate estimate{.value = sorted[order_of(count, per_mille) - 1]};
  const Binomial below(static_cast<double>(count), per_mille / 1000.0);
  // The low-th smallest lies above the percentile when fewer than `low` samples lie below it, the high-th smallest
  // lies below the percentile when at least `high` do.
  const auto fewer_than = [&](std::size_t k) { return boost::math::cdf(below, static_cast<double>(k - 1)); };
  const auto at_least = [&](std::size_t k) {
    return boost::math::cdf(boost::math::complement(below, static_cast<double>(k - 1)));
  };
  const std::size_t low = first_of(1, count + 1, [&](std::size_t k) { return fewer_than(k) > beyond_an_end; }) - 1;
  const std::size_t high = first_of(1, count + 1, [&](std::size_t k) { return at_least(k) <= beyond_an_end; });
  if (low >= 1 && high <= count) {
    estimate.range = {sorted[low - 1], sorted[high - 1]};
  }
  return estimate;
}

// Sums of differences from one sample: small, and so exact or nearly.
Estimate mean(std::span<const Duration> samples) {
  check(!samples.empty(), "a mean is that of at least one sample");
  const auto count = static_cast<double>(samples.size());
  double sum = 0.0;
  for (const Duration sample : samples) {
    sum += static_cast<double>((sample - samples.front()).count());
  }
  const double middle = sum / count;
  const auto from_first = [&](double difference) { return samples.front() + Duration{std::llround(difference)}; };
  Estimate estimate{.value = from_first(middle)};
  if (samples.size() == 1) {
    return estimate;
  }
  double squares = 0.0;
  for (const Duration sample : samples) {
    const double difference = static_cast<double>((sample - samples.front()).count()) - middle;
    squares += difference * difference;
  }
  const boost::math::students_t_distribution<double, Policy> student(count - 1.0);
  const double width = boost::math::quantile(boost::math::complement(student, beyond_an_end)) *
                       std::sqrt(squares / (count - 1.0) / count);
  estimate.range = {from_first(middle - width), from_first(middle + width)};
  return estimate;
}

Percentiles percentiles_of(std::vector<Duration> samples) {
  std::sort(samples.begin(), samples.end());
  return {.samples = samples.size(),
          .mean = mean(samples),
          .p50 = percentile(samples, 500),
          .p95 = percentile(samples, 950),
          .p99 = percentile(samples, 990),
          .p99_9 = percentile(samples, 999)};
}

}  // namespace commfuse
