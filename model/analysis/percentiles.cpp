// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/percentiles.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/analysis/student.h"
#include "model/check.h"

namespace commfuse {

namespace {

constexpr double beyond_an_end = 0.025;  // either side of a 95% range

/// Binomial distribution: the probabilities of the counts starting at `first`, without negligible ones.
struct Binomial {
  std::size_t first = 0;
  std::vector<double> probabilities;
};

/// Returns the distribution. Each weight follows from the previous one by the ratio of their probabilities;
/// normalization makes the sum 1. More than ten standard deviations from the mean, probabilities are negligible.
/// Requires 0 < p < 1.
Binomial binomial(std::size_t trials, double p) {
  const auto n = static_cast<double>(trials);
  const double reach = 10.0 * std::sqrt(n * p * (1.0 - p)) + 20.0;
  const auto first = static_cast<std::size_t>(std::max(0.0, n * p - reach));
  const std::size_t last = std::min(trials, static_cast<std::size_t>(n * p + reach));
  std::vector<double> weights{1.0};
  double sum = 1.0;
  for (std::size_t k = first; k < last; ++k) {
    const double ratio = static_cast<double>(trials - k) / static_cast<double>(k + 1) * (p / (1.0 - p));
    weights.push_back(weights.back() * ratio);
    sum += weights.back();
  }
  for (double& weight : weights) {
    weight /= sum;
  }
  return {first, std::move(weights)};
}

/// Returns the number of values, starting at `begin`, whose sum stays at or below `limit`. Requires that the sum of all
/// values exceeds `limit`.
template <class Iterator>
std::size_t count_within(Iterator begin, double limit) {
  std::size_t count = 0;
  double sum = *begin;
  while (sum <= limit) {
    sum += *++begin;
    ++count;
  }
  return count;
}

}  // namespace

std::size_t order_of(std::size_t samples, int per_mille) {
  check(samples >= 1 && per_mille >= 1 && per_mille <= 1000,
        "a percentile needs at least one sample and lies between 1 and 1000 per mille");
  return (samples * static_cast<std::size_t>(per_mille) + 999) / 1000;
}

Estimate percentile(std::span<const Duration> sorted, int per_mille) {
  const std::size_t count = sorted.size();
  Estimate estimate{.value = sorted[order_of(count, per_mille) - 1]};
  if (per_mille == 1000) {
    return estimate;  // No sample is above the largest possible value, so the estimate has no range.
  }
  const auto [first, probabilities] = binomial(count, per_mille / 1000.0);
  // The low-th smallest sample is above the percentile when fewer than `low` samples are below the percentile; the
  // high-th smallest is below the percentile when at least `high` samples are.
  const std::size_t low = first + count_within(probabilities.begin(), beyond_an_end);
  const std::size_t high = first + probabilities.size() - count_within(probabilities.rbegin(), beyond_an_end);
  if (low >= 1 && high <= count) {
    estimate.range = {sorted[low - 1], sorted[high - 1]};
  }
  return estimate;
}

// Sums the differences from one sample: they are small, so the sum is exact or nearly exact.
Estimate mean(std::span<const Duration> samples) {
  check(!samples.empty(), "a mean needs at least one sample");
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
  const double width = student_975(samples.size() - 1) * std::sqrt(squares / (count - 1.0) / count);
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
