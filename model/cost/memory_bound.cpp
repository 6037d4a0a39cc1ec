// SPDX-License-Identifier: Apache-2.0
#include "model/cost/memory_bound.h"

#include <algorithm>

#include "model/check.h"
#include "model/cost/op_time.h"

namespace commfuse {

Duration memory_bound_time(const Accelerator& accelerator, Bytes traffic, int sms) {
  check(traffic.count >= 0, "traffic is not negative");
  check(sms >= 1 && sms <= accelerator.sms, "the SM budget lies between 1 and the accelerator's SMs");
  if (traffic.count == 0) {
    return Duration{0};
  }
  const double rate = std::min(accelerator.hbm_bandwidth.value.value * accelerator.memory_bound_efficiency.value,
                               static_cast<double>(sms) * accelerator.sm_bandwidth.value.value);
  return accelerator.kernel_floor.value + op_time(static_cast<double>(traffic.count) / rate, "a memory-bound kernel");
}

}  // namespace commfuse
