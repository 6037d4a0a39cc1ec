// SPDX-License-Identifier: Apache-2.0
// Exchanges of scope gate_up of Llama-3.1-70B with 32K tokens, and a mesh to run them on.
#pragma once

#include <cstdint>

#include "model/strategies/options.h"
#include "tests/shipped.h"

namespace commfuse::test {

/// Returns a mesh with round numbers: 28 GB/s per wire, 137 GB/s for all wires of a GPU together.
inline Machine mesh_of_wires() {
  Machine mesh = shipped_machine("hardware/ascend-910b-mesh.yaml");
  mesh.link.peer.rate.value = BytesPerSecond{28e9};
  mesh.link.peer.aggregate_rate.value = BytesPerSecond{137e9};
  return mesh;
}

/// Returns the size of one rank's shard of the input.
inline Bytes gate_shard(std::int32_t ranks) { return Bytes{32768LL / ranks * 8192 * 2}; }

inline StrategyOptions direct_form(std::int32_t lanes) { return {.form = Form::direct, .lanes = lanes}; }

}  // namespace commfuse::test
