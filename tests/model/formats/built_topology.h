// SPDX-License-Identifier: Apache-2.0
// Topologies of the wires that a file describes.
#pragma once

#include <chrono>

#include "model/hardware/topology.h"

namespace commfuse::test {

/// Returns one node, in which every wire has a latency of 1 us.
inline Topology topology_of(const NodeWires& wires) {
  return build_topology({.wires = wires, .gpus_per_node = wires.gpus, .hop_latency = std::chrono::microseconds(1)});
}

}  // namespace commfuse::test
