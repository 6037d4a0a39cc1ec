// SPDX-License-Identifier: Apache-2.0
// Times of a GEMM and of a copy in HBM on a healthy GPU, with errors as for messages.
#pragma once

#include <vector>

#include "model/cost/gemm.h"
#include "model/expect/expectation.h"
#include "model/hardware/raised.h"

namespace commfuse {

/// Expected time of a kernel. Errors are standard errors of ln(time).
struct ExpectedKernel {
  Duration time{};
  double shared_error = 0.0;
  double own_error = 0.0;
  Limit limit = Limit::compute;
};

double error_of(const ExpectedKernel& expected);

/// Returns the range, as range_of() of a message does (expectation.h).
ExpectedRange range_of(const ExpectedKernel& expected, double false_alarms);

/// Expectations of one machine for many kernels, on all SMs and with cold weights.
class KernelExpectation {
 public:
  explicit KernelExpectation(const Machine& machine);

  /// Returns the expectation. Requires `size` to have extents above 0 and a dtype that the machine supports.
  [[nodiscard]] ExpectedKernel gemm(const GemmSize& size) const;
  /// Returns the expectation for copying `copied` bytes from HBM to HBM, whose traffic is twice as many bytes. Requires
  /// copied > 0.
  [[nodiscard]] ExpectedKernel copy(Bytes copied) const;

 private:
  template <class Time>
  ExpectedKernel of(const PricedShape& shape, const Time& time) const;

  Machine machine_;
  std::vector<RaisedMachine> raised_;
};

}  // namespace commfuse
