// SPDX-License-Identifier: Apache-2.0
#include "reports/figure/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/check.h"
#include "model/math/functions.h"

namespace commfuse::reports {

namespace {

/// A step of 1, 2 or 5 times a power of ten.
struct Step {
  int mantissa = 1;
  int exponent = 0;
  [[nodiscard]] double value() const { return mantissa * math::pow(10.0, exponent); }
};

/// Returns the smallest step that is not below `least`.
Step step_above(double least) {
  Step step{1, static_cast<int>(std::floor(math::log10(least)))};
  for (const int mantissa : {1, 2, 5}) {
    step.mantissa = mantissa;
    if (step.value() >= least * (1.0 - 1e-9)) {
      return step;
    }
  }
  return {1, step.exponent + 1};
}

}  // namespace

std::vector<Tick> round_ticks(double low, double high, int wanted) {
  check(low < high && wanted >= 1, "an axis has a length and ticks");
  const Step step = step_above((high - low) / wanted);
  std::vector<Tick> ticks;
  const auto first = static_cast<std::int64_t>(std::ceil(low / step.value() - 1e-9));
  const auto last = static_cast<std::int64_t>(std::floor(high / step.value() + 1e-9));
  for (std::int64_t i = first; i <= last; ++i) {
    const double at = static_cast<double>(i) * step.value();
    ticks.push_back({at, fmt::format("{:.{}f}", at, std::max(0, -step.exponent))});
  }
  return ticks;
}

std::vector<Tick> decade_ticks(double low, double high) {
  check(0.0 < low && low < high, "a logarithmic axis is above zero");
  std::vector<Tick> ticks;
  const int last = static_cast<int>(std::floor(math::log10(high) + 1e-9));
  for (int exponent = static_cast<int>(std::ceil(math::log10(low) - 1e-9)); exponent <= last; ++exponent) {
    const double at = math::pow(10.0, exponent);
    ticks.push_back({at, exponent >= -3 && exponent <= 5 ? fmt::format("{:.{}f}", at, std::max(0, -exponent))
                                                         : fmt::format("1e{}", exponent)});
  }
  return ticks;
}

std::vector<Tick> log_ticks(double low, double high) {
  if (high < 10.0 * low) {
    return round_ticks(low, high, 5);
  }
  if (high > 1000.0 * low) {
    return decade_ticks(low, high);
  }
  std::vector<Tick> ticks;
  const int last = static_cast<int>(std::floor(math::log10(high)));
  for (int exponent = static_cast<int>(std::floor(math::log10(low))); exponent <= last; ++exponent) {
    for (const double step : {1.0, 2.0, 5.0}) {
      if (const double at = math::pow(10.0, exponent) * step; at >= low && at <= high) {
        ticks.push_back({at, fmt::format("{:g}", at)});
      }
    }
  }
  return ticks;
}

}  // namespace commfuse::reports
