// SPDX-License-Identifier: Apache-2.0
// Equal nodes of equal accelerators, and the wires between two GPUs or in a group of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/hardware/accelerator.h"
#include "model/hardware/group_rates.h"
#include "model/hardware/link.h"
#include "model/hardware/topology.h"

namespace commfuse {

struct Segments;

/// Parameters of exchanges by pair of GPUs, if the pairs of a node differ.
struct PairPeers {
  std::vector<PeerParameters> kinds;
  std::vector<std::uint16_t> kind_of_pair;  ///< Index into kinds, by a x gpus_per_node + b.
};

/// Machine that `load_machine` has checked: every GPU reaches every other GPU. GPUs are numbered node by node.
struct Machine {
  std::string name;
  /// Names in tables of measurements: "H100-SXM5-80GB". The names of a cluster do not include those of its nodes.
  std::vector<std::string> known_as;
  std::string node_name;  ///< Hardware of a cluster's nodes, by name or by path.
  std::string executor;   ///< Executor of commfuse-validate that runs on this machine: "cpu"; empty if there is none.
  Accelerator accelerator;
  Link link;  ///< Link inside a node. `peer` describes the nearest pair.
  int gpus_per_node = 0;
  int nodes = 1;
  std::optional<Link> network;  ///< Link between nodes, as one GPU uses it; present if there are several.
  int nics_per_node = 0;        ///< 0 with one node.
  // Shared pointers, because a machine is copied for every point and these parts never change.
  /// Plan from which the wires below were made; null if unknown.
  std::shared_ptr<const TopologyPlan> plan;
  std::shared_ptr<const Topology> topology;
  std::shared_ptr<const Segments> segments;     ///< Segments of its topology; null if not computed.
  std::shared_ptr<const PairPeers> pair_peers;  ///< Null if all pairs of a node are equal.
  /// Parameters of a collective over GPUs 0 to i of a node, by i; null if all groups are equal.
  std::shared_ptr<const std::vector<CollectiveParameters>> group_collectives;
  /// Rates of simultaneous groups of GPUs a stride apart, relative to the whole node; null if all have the rate of the
  /// node.
  std::shared_ptr<const StridedRates> strided_rates;
  /// Parameters of a collective across nodes, by the number of the group's GPUs on each node, from one to all but one;
  /// null with one node.
  std::shared_ptr<const std::vector<CollectiveParameters>> network_groups;
};

/// Sets the machine's wires, and derives from them the parameters of pairs and groups of GPUs. Requires `plan` to
/// describe the machine's GPUs, which must reach each other.
void connect(Machine& machine, std::shared_ptr<const TopologyPlan> plan);

int total_gpus(const Machine& machine);

/// Returns the parameters of an exchange between two GPUs: with the single-peer rate in a node (on a mesh the rate of
/// one wire, never the sum; on a PCIe tree the rate of the slowest hop), or the network's rate across nodes. Requires
/// two different GPUs of the machine.
const PeerParameters& peer_between(const Machine& machine, int gpu_a, int gpu_b);

/// Returns the parameters of a collective over `gpus` GPUs starting at `first_gpu`, inside a node or across nodes. If
/// pairs differ, every group is priced as the group of the same size that begins at the node's first GPU. Requires gpus
/// >= 1.
const CollectiveParameters& collective_over(const Machine& machine, int first_gpu, int gpus);

/// Returns the parameters of a collective across nodes over a group with this many GPUs on each node. Requires a
/// network and 1 <= gpus_of_a_node <= gpus_per_node.
const CollectiveParameters& collective_across(const Machine& machine, int gpus_of_a_node);

/// GPUs of one node that send to other nodes at the same time.
struct SendingGpus {
  int of_group = 1;  ///< GPUs of the priced group.
  int of_node = 1;   ///< GPUs of all groups, including the priced one.
};

/// Returns the rate at which each GPU of the priced group sends to other nodes when it has many peers: the aggregate
/// rate of a rank's peers, reduced as GPUs share NICs, or the GPU's share of a collective's rate if that is higher.
/// Requires a network and the requirements of share_of_nics.
BytesPerSecond rate_across(const Machine& machine, const SendingGpus& senders);

/// Numbers of GPUs and NICs of a node.
struct NodeNics {
  int gpus = 1;
  int nics = 1;
};

/// Returns the share of a node's NICs that a group gets: each GPU sends through the NIC next to it. Requires 1 <=
/// of_group <= of_node <= node.gpus and a NIC.
double share_of_nics(const SendingGpus& senders, const NodeNics& node);

/// Returns the share of a group's rate over the NICs that remains while the other groups send. Has the requirements of
/// share_of_nics.
double part_beside(const Machine& machine, const SendingGpus& senders);

/// Reason for a change of rates.
enum class RateChange : std::uint8_t {
  every_rate,      ///< A group of GPUs on the machine's own wires: errors stay the same.
  supposed_wires,  ///< Hypothetical links (prior); own_copy_rate and own_sum_rate are unchanged.
};

/// Returns the parameters with every rate multiplied by `times`, including NCCL's estimates; latencies stay the same.
/// own_copy_rate and own_sum_rate never fall; with RateChange::every_rate they rise if times > 1, as in the fits to
/// pairs of a PCIe tree. Requires times > 0.
CollectiveParameters with_rates(CollectiveParameters parameters, double times,
                                RateChange change = RateChange::every_rate);

/// Returns the parameters with every rate limited to `limit`, because an estimated or scaled rate may exceed it.
/// own_copy_rate, own_sum_rate and NCCL's own estimates stay the same.
CollectiveParameters with_rates_up_to(CollectiveParameters parameters, BytesPerSecond limit);

/// Returns the parameters of collectives over the first 1, 2, ... GPUs of a node, derived from the parameters of the
/// whole node: rates scale with the group's share of the node's wires. Returns null if all groups are equal.
std::shared_ptr<const std::vector<CollectiveParameters>> group_collectives_of(const GroupRates& rates,
                                                                              int gpus_per_node,
                                                                              const CollectiveParameters& whole);

/// Returns the parameters of each pair of a node, from the parameters of its nearest pair: the rate scales with the
/// slowest hop, and the latency grows with the additional hops. Returns null if all pairs are equal. Requires the GPUs
/// of `topology` to reach each other.
std::shared_ptr<const PairPeers> pair_peers_of(const Topology& topology, int gpus_per_node,
                                               const PeerParameters& nearest);

}  // namespace commfuse
