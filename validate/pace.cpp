// SPDX-License-Identifier: Apache-2.0
#include "validate/pace.h"

namespace commfuse::validate {

Duration ring_time(const Pace& pace, Bytes whole, int members, bool twice) {
  const Duration step = pace.latency + Bytes{whole.count / members} / pace.bandwidth;
  return (members - 1) * (twice ? 2 : 1) * step;
}

}  // namespace commfuse::validate
