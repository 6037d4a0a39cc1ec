// SPDX-License-Identifier: Apache-2.0
// Equal nodes of equal accelerators, and what joins two GPUs or a group of them.
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

/// What one peer sees where the pairs of a node differ.
struct PairPeers {
  std::vector<PeerParameters> kinds;
  std::vector<std::uint16_t> kind_of_pair;  ///< Index into kinds, by a x gpus_per_node + b.
};

/// GPUs are numbered node by node. Valid for ever after `load_machine`: every GPU reaches every other.
struct Machine {
  std::string name;
  /// What tables of measurements call it: "H100-SXM5-80GB". Of a cluster: without what its nodes are called.
  std::vector<std::string> known_as;
  std::string node_name;  ///< Of a cluster: the hardware of its nodes, as its file names it.
  std::string executor;   ///< Of commfuse-validate, that does the real thing here: "cpu"; empty: none does.
  Accelerator accelerator;
  Link link;  ///< Inside a node. Its peer is the nearest pair's.
  int gpus_per_node = 0;
  int nodes = 1;
  std::optional<Link> network;  ///< Between nodes, as one GPU sees it; there when there are several.
  int nics_per_node = 0;        ///< 0 with one node.
  // Shared, because a machine is copied for every point and these never change.
  std::shared_ptr<const TopologyPlan> plan;  ///< What the wires below were made from; null: nobody told.
  std::shared_ptr<const Topology> topology;
  std::shared_ptr<const Segments> segments;     ///< Of its topology; null: not worked out.
  std::shared_ptr<const PairPeers> pair_peers;  ///< Null: all pairs of a node are alike.
  /// Of GPUs 0 to i inside a node, by i; null where all groups are alike.
  std::shared_ptr<const std::vector<CollectiveParameters>> group_collectives;
  /// What part of the whole node's collectives groups get whose GPUs do not stand side by side; null where all get all.
  std::shared_ptr<const StridedRates> strided_rates;
  /// Across nodes, of groups that have so many GPUs on each, one up to all but one; null with one node.
  std::shared_ptr<const std::vector<CollectiveParameters>> network_groups;
};

/// Gives a machine its wires, and pairs and groups what they see of those. Requires a plan of the machine's GPUs, and
/// GPUs that reach each other.
void connect(Machine& machine, std::shared_ptr<const TopologyPlan> plan);

int total_gpus(const Machine& machine);

/// One exchange between two GPUs: the single-peer rate in a node (on a mesh one wire, never the sum of them; on a PCIe
/// tree the slowest hop's), the network's across nodes. Requires two different GPUs of the machine.
const PeerParameters& peer_between(const Machine& machine, int gpu_a, int gpu_b);

/// One collective over `gpus` GPUs from `first_gpu` on: inside a node, or across nodes. Where pairs differ, a group of
/// so many counts as the first of its node. Requires gpus >= 1.
const CollectiveParameters& collective_over(const Machine& machine, int first_gpu, int gpus);

/// One collective across nodes over a group that has so many GPUs on each. Requires a network and 1 <= gpus_of_a_node
/// <= gpus_per_node.
const CollectiveParameters& collective_across(const Machine& machine, int gpus_of_a_node);

/// What a GPU of such a group sends to other nodes while so many of its node's do, each to many: what all peers of a
/// rank get together, or as much less as GPUs share NICs; as much as in a collective where that is more. Requires as
/// above.
BytesPerSecond rate_across(const Machine& machine, int gpus_of_a_node, int busy);

/// The share of a node's NICs that `gpus` of its GPUs get while `busy` of them send, these among them: each sends by
/// the NIC next to it. Requires 1 <= gpus <= busy <= gpus_per_node and a NIC.
double share_of_nics(int gpus, int busy, int gpus_per_node, int nics_per_node);

/// The part that a group with so many GPUs on a node keeps of its rate over the NICs while `busy` GPUs of the node
/// send. Requires as above.
double part_beside(const Machine& machine, int gpus, int busy);

/// What is said of rates that are others than the file's.
enum class RateChange : std::uint8_t {
  every_rate,      ///< Of a group of GPUs on the machine's own wires: as sure as it was.
  supposed_wires,  ///< Of wires that nobody has: a prior. What a rank copies for itself stays.
};

/// The same with every rate so many times as high, NCCL's too; latencies stay. What a rank copies for itself is not
/// slower on fewer wires; on faster ones it is faster, as the fits to pairs of a tree have it. Requires times > 0.
CollectiveParameters with_rates(CollectiveParameters parameters, double times,
                                RateChange change = RateChange::every_rate);

/// The same with no rate above `most`: that of an estimate, or of a group that is as much faster as its wires are, may
/// be. What a rank copies for itself stays.
CollectiveParameters with_rates_up_to(CollectiveParameters parameters, BytesPerSecond most);

/// What the first groups of a node see, by size, when all of it sees `whole`: of its rates as much as of the node's
/// wires. Null when all are alike.
std::shared_ptr<const std::vector<CollectiveParameters>> group_collectives_of(const GroupRates& rates,
                                                                              int gpus_per_node,
                                                                              const CollectiveParameters& whole);

/// What each pair of a node sees, when its nearest pair sees `nearest`: another pair's rate is smaller as its slowest
/// hop is, and its latency longer by the hops it has more. Null when all pairs are alike. Requires GPUs that reach each
/// other.
std::shared_ptr<const PairPeers> pair_peers_of(const Topology& topology, int gpus_per_node,
                                               const PeerParameters& nearest);

}  // namespace commfuse
