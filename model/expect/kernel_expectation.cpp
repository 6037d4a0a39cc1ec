// SPDX-License-Identifier: Apache-2.0
#include "model/expect/kernel_expectation.h"

#include <cmath>

#include "model/cost/memory_bound.h"
#include "model/cost/priced_shape.h"
#include "model/math/functions.h"

namespace commfuse {

double error_of(const ExpectedKernel& expected) {
  return std::sqrt(expected.shared_error * expected.shared_error + expected.own_error * expected.own_error);
}

ExpectedRange range_of(const ExpectedKernel& expected, double false_alarms) {
  return range_of(Expected{.message = {}, .time = expected.time, .shared_error = error_of(expected)}, false_alarms);
}

KernelExpectation::KernelExpectation(const Machine& machine)
    : machine_(machine), raised_(raised_beside_decoding(machine)) {}

template <class Time>
ExpectedKernel KernelExpectation::of(const PricedShape& shape, const Time& time) const {
  ExpectedKernel expected{.time = time(machine_.accelerator),
                          .own_error = residual_of(shape, machine_, 1),
                          .limit = limit_of(shape, machine_, 1)};
  double squares = 0.0;
  for (const RaisedMachine& other : raised_) {
    const double effect = math::log(to_seconds(time((*other.machine).accelerator)) / to_seconds(expected.time));
    squares += effect * effect;
  }
  expected.shared_error = std::sqrt(squares);
  return expected;
}

ExpectedKernel KernelExpectation::gemm(const GemmSize& size) const {
  PricedShape shape{.kind = PricedKind::product, .dtype = size.dtype};
  shape.size[static_cast<std::size_t>(FitSize::m)] = size.m;
  shape.size[static_cast<std::size_t>(FitSize::n)] = size.n;
  shape.size[static_cast<std::size_t>(FitSize::k)] = size.k;
  return of(shape,
            [&](const Accelerator& accelerator) { return estimate_gemm(accelerator, size, accelerator.sms).time; });
}

ExpectedKernel KernelExpectation::copy(Bytes copied) const {
  PricedShape shape{.kind = PricedKind::memory_bound};
  shape.size[static_cast<std::size_t>(FitSize::bytes)] = 2 * copied.count;
  ExpectedKernel expected = of(shape, [&](const Accelerator& accelerator) {
    return memory_bound_time(accelerator, Bytes{2 * copied.count}, accelerator.sms);
  });
  expected.limit = expected.time < 2 * machine_.accelerator.kernel_floor.value ? Limit::latency : Limit::bandwidth;
  return expected;
}

}  // namespace commfuse
