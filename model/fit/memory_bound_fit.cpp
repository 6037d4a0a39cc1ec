// SPDX-License-Identifier: Apache-2.0
#include "model/fit/memory_bound_fit.h"

#include <algorithm>
#include <array>

#include "model/check.h"
#include "model/cost/memory_bound.h"
#include "model/fit/knobs.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

constexpr std::size_t fewest_rows = 6;

using MemoryKnob = Knob<Accelerator>;
constexpr std::array knobs{
    MemoryKnob{"kernel_floor", &Accelerator::kernel_floor, 2.0, 0.01, 1000.0},
    MemoryKnob{"memory_bound_efficiency", &Accelerator::memory_bound_efficiency, 0.3, 0.002, 1.0}};

double traffic_rate(const MeasuredTraffic& row) {
  return static_cast<double>(row.traffic.count) / to_seconds(row.time);
}

}  // namespace

MemoryBoundFit fit_memory_bound(const Accelerator& accelerator, std::span<const MeasuredTraffic> rows,
                                const std::string& source) {
  check(rows.size() >= fewest_rows, "a fit has more rows than parameters");
  const auto fastest = std::ranges::max_element(rows, {}, traffic_rate);
  MemoryBoundFit result{.accelerator = accelerator, .fit = {}};
  Accelerator& tried = result.accelerator;
  tried.hbm_bandwidth = {
      .value = {traffic_rate(*fastest)}, .provenance = Provenance::measured, .source = source + ", fastest row"};
  tried.sm_bandwidth = tried.hbm_bandwidth;
  const Residuals residuals = [&](std::span<const double> values, std::span<double> out) {
    set_knobs<Accelerator>(knobs, values, tried);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Duration predicted = memory_bound_time(tried, rows[i].traffic, tried.sms);
      out[i] = math::log(to_seconds(predicted) / to_seconds(rows[i].time));
    }
  };
  result.fit = robust_fit(fit_parameters<Accelerator>(knobs), rows.size(), residuals);
  set_fitted<Accelerator>(knobs, result.fit, source, tried);
  return result;
}

std::string memory_bound_yaml(const Accelerator& accelerator, int indent) {
  return parameter_line("hbm_bandwidth", accelerator.hbm_bandwidth, indent) +
         parameter_line("sm_bandwidth", accelerator.sm_bandwidth, indent) +
         knobs_yaml<Accelerator>(knobs, accelerator, indent);
}

}  // namespace commfuse
