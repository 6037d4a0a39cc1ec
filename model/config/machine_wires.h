// SPDX-License-Identifier: Apache-2.0
// The wires of a machine: what a file of hardware or of a cluster says under `topology`.
#pragma once

#include <map>

#include "model/config/yaml_reader.h"
#include "model/hardware/machine.h"

namespace commfuse {

/// The wires of one node. Without `topology` it is an NVSwitch with hops that take no time of their own. Notes
/// mistakes; throws ConfigError for a file of wires that cannot be read. Requires the GPUs a node and the link of the
/// machine.
TopologyPlan read_node_plan(const YamlFile& file, YamlMap root, const Machine& machine);

/// Whether a single peer gets no more than one wire has, where each peer has a wire. Notes a mistake.
void check_wire_rate(YamlMap root, const Machine& machine, const TopologyPlan& plan);

/// Whether exchanges and collectives of a node are no faster than its GPUs' links. Notes a mistake.
void check_node_rates(YamlMap root, const Machine& machine);

/// The same of the wires of a topology, once it is wired up.
void check_node_wires(YamlMap root, const Machine& machine, const TopologyPlan& plan);

/// The same across nodes, of all GPUs and of `groups` by their GPUs on a node: an exchange is no faster than a NIC, a
/// collective no faster than the NICs of a node. Requires a network.
void check_network_rates(YamlMap root, const Machine& machine, const std::map<int, CollectiveParameters>& groups);

/// How many NICs of a node its GPUs use; 0 where the file tells of none.
int nics_of(const NodeWires& wires);

/// Once everything else is right. Notes a mistake when the wires leave a GPU out, or are slower than the link.
void wire_up(YamlMap root, Machine& machine, const TopologyPlan& plan);

}  // namespace commfuse
