// SPDX-License-Identifier: Apache-2.0
// Parts of training steps, prefills and decoding steps: repeated layers, and times on the slowest of several GPUs.
#pragma once

#include <cstdint>

#include "sim/step/group_link.h"
#include "sim/step/step.h"

namespace commfuse {

inline Stream repeated(const Stream& stream, std::int64_t times) {
  Stream total;
  for (std::int64_t i = 0; i < times; ++i) {
    total = total.then(stream);
  }
  return total;
}

/// Returns the dense peak of all GPUs, in FLOPs per second.
inline double peak_of(const StepPoint& point) {
  return static_cast<double>(point.plan.gpus()) * point.machine->accelerator.dense_peak(point.plan.dtype).value;
}

/// Returns the point with every GPU's kernels `slowdown` times as slow, because all GPUs wait for the slowest.
inline StepPoint slowed(StepPoint point, double slowdown) {
  point.slowdown *= slowdown;
  return point;
}

/// Returns the point with every GPU's kernels as slow as on the slowest GPU of an average machine.
inline StepPoint on_average(const StepPoint& point) {
  return slowed(point, slowest_of(point.plan.gpus(), point.rank_sigma));
}

/// Returns the percentiles of the time that `time_of` returns for a point, over machines whose GPUs differ in speed at
/// random.
template <class TimeOf>
StepPercentiles over_machines(const StepPoint& point, const TimeOf& time_of) {
  const auto at = [&](double probability) {
    return time_of(slowed(point, slowest_of(point.plan.gpus(), point.rank_sigma, Probability{probability})));
  };
  return {.equal_gpus = time_of(point), .p50 = at(0.5), .p95 = at(0.95), .p99 = at(0.99), .p99_9 = at(0.999)};
}

}  // namespace commfuse
