// SPDX-License-Identifier: Apache-2.0
#include "model/units.h"

#include <cmath>

#include "model/check.h"

namespace commfuse {

Duration from_seconds(double seconds) {
  check(seconds >= 0.0 && seconds < 9.2e6, "a duration lies between 0 and 9.2e6 seconds");
  return Duration{std::llround(seconds * 1e12)};
}

Duration operator/(Bytes amount, BytesPerSecond rate) {
  check(rate.value > 0.0, "a bandwidth is positive");
  return from_seconds(static_cast<double>(amount.count) / rate.value);
}

Duration operator/(Flops work, FlopsPerSecond rate) {
  check(rate.value > 0.0, "a compute rate is positive");
  return from_seconds(work.count / rate.value);
}

}  // namespace commfuse
