// SPDX-License-Identifier: Apache-2.0
// What joins the accelerators of one node, as one peer sees it and as a collective sees it.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "model/hardware/fit_scope.h"
#include "model/hardware/nccl_tuning.h"
#include "model/hardware/parameter.h"
#include "model/units.h"

namespace commfuse {

/// Messages up to a size go by a protocol of their own: NCCL's LL, with less latency and less rate.
struct SmallMessages {
  Parameter<Bytes> up_to;
  Parameter<Duration> latency;
  Parameter<BytesPerSecond> rate;
};

/// One exchange with one peer.
struct PeerParameters {
  Parameter<Duration> latency;     ///< From both ends posted to the first byte's arrival; no launch in it.
  Parameter<BytesPerSecond> rate;  ///< What a single peer gets, one direction, both directions busy.
  /// What all peers of a rank get together, one direction: as much as one where they share a port, as on a switch (what
  /// a file means that leaves it out); up to the sum where each has a wire of its own, as on a mesh. Sends and receives
  /// do not share it.
  Parameter<BytesPerSecond> aggregate_rate;
  Parameter<int> ctas;                                ///< SMs the kernel holds while it runs; 0 for copy engines.
  Parameter<Duration> issue_cost;                     ///< Host lane: issuing one grouped send and receive.
  std::optional<SmallMessages> small = std::nullopt;  ///< Without it latency and rate hold for every size.
  FitScope fit{};
};

/// A ring, or steps to every peer in turn, by one protocol; model/cost/communication.h says how each enters.
struct ProtocolParameters {
  Parameter<Duration> base_latency;         ///< Once a call; no host issue in it.
  Parameter<Duration> step_latency;         ///< Once a step.
  Parameter<BytesPerSecond> rate;           ///< Wire bytes a rank sends a second, for very large sizes.
  Parameter<BytesPerSecond> own_copy_rate;  ///< Bytes a second of a rank's own share, copied from input to output.
  Parameter<Bytes>
      ramp_size;  ///< Wire bytes whose time the pipeline's filling costs at most; at this size, half of it.
};

/// All-reduce by sums in the switch (NVLS).
struct SwitchParameters {
  Parameter<Duration> base_latency;
  Parameter<BytesPerSecond> rate;  ///< Bytes of the tensor a second.
  /// As above, of a rank's share of the tensor: NCCL goes round in loops of channels x ranks x chunk (src/enqueue.cc,
  /// calcCollChunking), and the first of them fills the pipeline.
  Parameter<Bytes> ramp_size_per_rank;
};

/// A tree of nodes by one protocol.
struct TreeProtocol {
  Parameter<Duration> base_latency;
  Parameter<Duration> level_latency;  ///< Once a doubling of the nodes.
  Parameter<BytesPerSecond> rate;     ///< Bytes of the tensor a second.
  /// As rate, between two nodes, where no node passes on; without it rate.
  std::optional<Parameter<BytesPerSecond>> two_nodes_rate = std::nullopt;
};

/// What a tree of so many nodes gets.
inline const Parameter<BytesPerSecond>& rate_over(const TreeProtocol& tree, int nodes) {
  return nodes == 2 && tree.two_nodes_rate ? *tree.two_nodes_rate : tree.rate;
}

/// All-reduce across nodes by a tree of them. Of itself by NCCL's Simple.
struct TreeParameters : TreeProtocol {
  Parameter<Bytes> ramp_size_per_rank;  ///< As above, of a share of the tensor: as many as a node has ranks.
  std::optional<TreeProtocol> ll;
  std::optional<TreeProtocol> ll128;
};

/// Grouped sends and receives: what goes to one peer decides the protocol.
struct AllToAllParameters {
  Parameter<Bytes> small_up_to;  ///< To one peer.
  ProtocolParameters small;
  ProtocolParameters large;
};

/// The kernels among which NCCL chooses by its own estimates of them.
struct NcclKernels {
  NcclTuning tuning;
  ProtocolParameters ll;
  Parameter<Bytes> ll_fill;                 ///< A rank's share from which on all channels are at work.
  std::optional<ProtocolParameters> ll128;  ///< Over NVLink.
  std::optional<SwitchParameters> nvls;     ///< With a switch that sums.
};

/// What one launch costs. Of itself a ring by one protocol, NCCL's Simple where there are others.
struct CollectiveParameters : ProtocolParameters {
  Parameter<int> ctas;             ///< SMs the kernel holds while it runs; 0 for copy engines.
  Parameter<Duration> issue_cost;  ///< Host lane: issuing one collective.
  // Shared, because a machine is copied for every point and these never change. Null: the ring above.
  std::shared_ptr<const NcclKernels> nccl = nullptr;
  std::shared_ptr<const AllToAllParameters> all_to_all = nullptr;
  std::shared_ptr<const TreeParameters> tree = nullptr;  ///< Of a network.
  FitScope fit{};
};

/// Whether NCCL's estimates choose between the tree and the ring; else an all-reduce across nodes takes the tree there
/// is.
inline bool nccl_chooses_trees(const CollectiveParameters& collective) {
  return collective.nccl != nullptr && collective.nccl->tuning.tree_channels > 0;
}

/// The capacity of wires of which nothing is known.
inline constexpr BytesPerSecond unlimited{std::numeric_limits<double>::infinity()};

struct Link {
  std::string name;
  Parameter<BytesPerSecond> nominal_rate;  ///< The data sheet's, one direction; a cost only of bounds.
  PeerParameters peer;
  CollectiveParameters collective;
  /// What the wires are built for, width times generation: the nominal rate of a file. No result is faster
  /// (model/cost/cut_bound.h). Infinite where nobody knows, and in a machine that only tells what a parameter is worth.
  BytesPerSecond capacity = unlimited;
};

}  // namespace commfuse
