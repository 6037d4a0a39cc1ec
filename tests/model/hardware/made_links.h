// SPDX-License-Identifier: Apache-2.0
// Links and machines with round numbers, for sums that can be done by hand.
#pragma once

#include <chrono>

#include "model/hardware/machine.h"

namespace commfuse::test {

inline BytesPerSecond gigabytes(double rate) { return {rate * 1e9}; }

/// 5 us and a rate for two, 10 us and another for many; a rank copies its own share at once.
inline Link link(double peer_rate, double collective_rate) {
  Link made;
  made.peer.latency.value = std::chrono::microseconds(5);
  made.peer.rate.value = gigabytes(peer_rate);
  made.collective.base_latency.value = std::chrono::microseconds(10);
  made.collective.rate.value = gigabytes(collective_rate);
  made.collective.own_copy_rate.value = BytesPerSecond{1e30};
  return made;
}

}  // namespace commfuse::test
