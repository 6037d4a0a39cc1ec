// SPDX-License-Identifier: Apache-2.0
// Reads the wires of a machine: the map `topology` in a file of hardware or of a cluster.
#pragma once

#include <map>

#include "model/config/inherited_rates.h"
#include "model/config/yaml_reader.h"
#include "model/hardware/machine.h"

namespace commfuse {

/// Reads the wires of one node. Without `topology`, the node has an NVSwitch whose hops take no time. Notes mistakes;
/// throws ConfigError when a file of wires cannot be read. `factors`, which are those of the link, scale inherited
/// rates of wires. Requires `machine` to have its GPUs per node and its link.
TopologyPlan read_node_plan(const YamlFile& file, YamlMap root, const Machine& machine, const RateFactors& factors);

/// Checks, for a mesh or a ring, that the rate to a single peer does not exceed the rate of one wire. Notes a mistake.
void check_wire_rate(YamlMap root, const Machine& machine, const TopologyPlan& plan);

/// Checks that exchanges and collectives of a node are no faster than its GPUs' links. Notes a mistake.
void check_node_rates(YamlMap root, const Machine& machine);

/// Checks that collectives of a node are no faster than the wires of its topology. Notes a mistake, at the topology if
/// another file has the link. Requires connected wires (wire_up).
void check_node_wires(YamlMap root, const Machine& machine, const TopologyPlan& plan);

/// Returns the highest rate at which each GPU can send in an all-to-all over this many GPUs of every node. Every GPU
/// sends its own data, and only data for other nodes pass the NICs.
BytesPerSecond all_to_all_limit(const Machine& machine, int gpus);

/// Checks the rates across nodes, for all GPUs and for `groups`, whose keys are GPUs per node: an exchange must be no
/// faster than a NIC, and a collective no faster than the NICs that its GPUs use. Notes mistakes. Requires `machine` to
/// have a network.
void check_network_rates(YamlMap root, const Machine& machine, const std::map<int, CollectiveParameters>& groups);

/// Returns how many NICs of a node its GPUs use; 0 when the file describes none.
int nics_of(const NodeWires& wires);

/// Connects the wires; the rest of the file must be free of mistakes. Notes a mistake when the wires do not reach every
/// GPU, or when no pair of GPUs has the peer rate of the link.
void wire_up(YamlMap root, Machine& machine, const TopologyPlan& plan);

}  // namespace commfuse
