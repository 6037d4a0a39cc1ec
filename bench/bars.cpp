// SPDX-License-Identifier: Apache-2.0
#include "bench/bars.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

namespace commfuse::bench {

namespace {

std::string verdict(double measured, std::string_view relation, double bar, const std::string& unit, bool met) {
  return fmt::format("{:.3g} {} {:.3g} {}: {}", measured, relation, bar, unit, met ? "met" : "MISSED");
}

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

std::string at_most(double measured, double bar, const std::string& unit) {
  return verdict(measured, "<=", bar, unit, measured <= bar);
}
std::string at_least(double measured, double bar, const std::string& unit) {
  return verdict(measured, ">=", bar, unit, measured >= bar);
}

}  // namespace commfuse::bench
