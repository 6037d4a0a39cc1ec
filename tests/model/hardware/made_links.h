// SPDX-License-Identifier: Apache-2.0
// Links and machines with round numbers, for sums worked out by hand.
#pragma once

#include <chrono>

#include "model/hardware/machine.h"

namespace commfuse::test {

inline BytesPerSecond gigabytes(double rate) { return {rate * 1e9}; }

/// Returns a link with a latency of 5 us for pairs and 10 us for collectives, and with these rates in GB/s. Copies of a
/// rank's own share take no time.
inline Link link(double peer_rate, double collective_rate) {
  Link result;
  result.peer.latency.value = std::chrono::microseconds(5);
  result.peer.rate.value = gigabytes(peer_rate);
  result.collective.base_latency.value = std::chrono::microseconds(10);
  result.collective.rate.value = gigabytes(collective_rate);
  result.collective.own_copy_rate.value = BytesPerSecond{1e30};
  return result;
}

/// Returns two nodes of four GPUs, without a topology.
inline Machine two_nodes() {
  return {.name = "two", .link = link(100, 200), .gpus_per_node = 4, .nodes = 2, .network = link(10, 40)};
}

/// Returns two GPUs per bridge at 60 GB/s each, two bridges per root at 30 GB/s, and two roots joined at 20 GB/s.
inline TopologyPlan pcie_tree() {
  return {.kind = NodeKind::pcie_tree,
          .gpus_per_node = 8,
          .gpu_rate = gigabytes(60),
          .hop_latency = std::chrono::microseconds(1),
          .gpus_per_bridge = 2,
          .bridges_per_root = 2,
          .bridge_rate = {.value = gigabytes(30)},
          .root_rate = Parameter<BytesPerSecond>{.value = gigabytes(20)}};
}

}  // namespace commfuse::test
