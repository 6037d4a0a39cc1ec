// SPDX-License-Identifier: Apache-2.0
// What a machine file says of the wires: `link` inside a node, `network` between nodes.
#pragma once

#include "model/config/yaml_reader.h"
#include "model/hardware/link.h"

namespace commfuse {

/// A map `collective`. Where NCCL is described its estimates stand for kernels that are left out, Simple among them.
CollectiveParameters read_collective(YamlMap map);

/// A map with name, nominal_rate, peer and collective.
Link read_link(YamlMap map);

}  // namespace commfuse
