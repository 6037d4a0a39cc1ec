// SPDX-License-Identifier: Apache-2.0
#include "validate/measure/bootstrap.h"

#include <algorithm>
#include <vector>

#include "model/check.h"
#include "validate/values/random.h"

namespace commfuse::validate {

namespace {

constexpr int resamples = 2000;
constexpr int resamples_per_tail = resamples / 40;  // 2.5%

/// Returns the median, like percentile(): for an even number of times, the lower of the two middle ones. Reorders
/// `times`.
double median_of(std::vector<Duration>& times) {
  const auto middle = times.begin() + (static_cast<std::ptrdiff_t>(times.size()) - 1) / 2;
  std::nth_element(times.begin(), middle, times.end());
  return to_seconds(*middle);
}

double ratio_of(std::vector<Duration>& times, std::vector<Duration>& base) {
  return median_of(times) / median_of(base);
}

}  // namespace

Ratio ratio_of_medians(std::span<const Duration> times, std::span<const Duration> base, std::uint64_t seed) {
  check(!times.empty() && !base.empty(), "a ratio needs a time in each span");
  std::vector<Duration> resampled_times(times.begin(), times.end());
  std::vector<Duration> resampled_base(base.begin(), base.end());
  Ratio ratio{.value = ratio_of(resampled_times, resampled_base)};
  Random random(seed);
  const auto draw_index = [&](std::size_t count) { return static_cast<std::size_t>(random.next() % count); };
  std::vector<double> ratios;
  for (int i = 0; i < resamples; ++i) {
    for (std::size_t n = 0; n < times.size(); ++n) {
      const std::size_t round = draw_index(times.size());
      resampled_times[n] = times[round];
      if (times.size() == base.size()) {
        resampled_base[n] = base[round];
      }
    }
    for (std::size_t n = 0; times.size() != base.size() && n < base.size(); ++n) {
      resampled_base[n] = base[draw_index(base.size())];
    }
    ratios.push_back(ratio_of(resampled_times, resampled_base));
  }
  std::sort(ratios.begin(), ratios.end());
  ratio.low = ratios[resamples_per_tail];
  ratio.high = ratios[resamples - 1 - resamples_per_tail];
  return ratio;
}

}  // namespace commfuse::validate
