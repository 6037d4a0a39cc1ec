// SPDX-License-Identifier: Apache-2.0
// Reads the links of a machine file: `link` inside a node, `network` between nodes.
#pragma once

#include "model/config/yaml_reader.h"
#include "model/hardware/link.h"

namespace commfuse {

/// Reads a map `collective`. If the map has `nccl`, NCCL's own estimates stand in for omitted kernels, including
/// Simple.
CollectiveParameters read_collective(YamlMap map);

/// Reads a map with name, nominal_rate, peer and collective.
Link read_link(YamlMap map);

}  // namespace commfuse
