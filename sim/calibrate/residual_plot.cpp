// SPDX-License-Identifier: Apache-2.0
#include "sim/calibrate/residual_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include "model/fit/robust_fit.h"
#include "model/math/functions.h"
#include "model/text/decimals.h"

namespace commfuse::calibrate {

namespace {

constexpr int columns = 41;        // odd, so that an error of zero is in the middle column
constexpr double farthest = 0.30;  // larger errors are drawn at the edge

/// Returns the decade of a time: 0 is 1 us to 10 us.
int decade_of(double microseconds) { return static_cast<int>(std::floor(math::log10(microseconds))); }

std::string decade_in_words(int decade) {
  const auto time = [](int power) {
    constexpr std::array<std::string_view, 4> units{"ns", "us", "ms", "s"};
    const int thousand = std::clamp((power + 3) / 3, 0, 3);
    return fmt::format("{:g} {}", math::pow(10.0, power + 3 - 3 * thousand), units[static_cast<std::size_t>(thousand)]);
  };
  return fmt::format("{:>6} to {:<6}", time(decade), time(decade + 1));
}

std::size_t column_of(double error) {
  const double share = std::clamp(error / farthest, -1.0, 1.0);
  return static_cast<std::size_t>(std::lround((share + 1.0) / 2.0 * (columns - 1)));
}

std::string line_of(const std::vector<double>& errors) {
  const double median = quantile(errors, 0.5);
  std::string line(columns, ' ');
  line[column_of(0.0)] = '|';
  for (std::size_t at = column_of(quantile(errors, 0.05)); at <= column_of(quantile(errors, 0.95)); ++at) {
    line[at] = '-';
  }
  line[column_of(median)] = 'o';
  return fmt::format("{} {:>7}% {:>6}", line, with_sign(100.0 * median, 1), errors.size());
}

}  // namespace

std::string residual_plot(std::span<const Residual> residuals) {
  std::map<int, std::vector<double>> decades;
  for (const Residual& residual : residuals) {
    decades[decade_of(residual.measured_us)].push_back(residual.predicted_us / residual.measured_us - 1.0);
  }
  std::string text = fmt::format("    {:<16} {:<{}} {:>8} {:>6}\n", "measured", "predicted / measured - 1: middle 90%",
                                 columns, "median", "rows");
  for (const auto& [decade, errors] : decades) {
    text += fmt::format("    {} {}\n", decade_in_words(decade), line_of(errors));
  }
  return text + fmt::format("    {:<16} {:<{}}{:^5}{:>{}}\n", "", "-30%", columns / 2 - 2, "0", "+30%",
                            columns - columns / 2 - 3);
}

}  // namespace commfuse::calibrate
