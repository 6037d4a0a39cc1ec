// SPDX-License-Identifier: Apache-2.0
// Counts how often the transfers of a program cross each wire of a machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/hardware/machine.h"
#include "model/hardware/segments.h"
#include "model/program/program.h"

namespace commfuse {

/// Wires whose loads are counted: each link in each direction, the port of each GPU, out and in, and the NICs of each
/// node together, out and in. If the transfers of every node repeat the first node's transfers, only the wires of the
/// fabric and of one node are counted; that node represents all nodes.
class CountedWires {
 public:
  /// Rank r runs on GPU r. Requires `machine.topology`.
  CountedWires(const Program& program, const Machine& machine);

  [[nodiscard]] std::size_t count() const { return first_port_ + 2 * gpus_ + 2 * nodes_; }
  /// Returns the number of ranks whose transfers are counted.
  [[nodiscard]] Rank counted_ranks() const { return counted_ranks_; }
  /// Returns how many times the fabric carries what one counted rank sends over it.
  [[nodiscard]] int times_on_fabric() const { return times_on_fabric_; }
  [[nodiscard]] bool is_of_fabric(std::size_t wire) const {
    return wire < static_cast<std::size_t>(segments_->of_fabric);
  }
  /// Returns true for a wire that joins a GPU to a NIC or a NIC to the fabric, or belongs to the fabric.
  [[nodiscard]] bool is_of_network(std::size_t wire) const;

  /// Returns true for a link inside a node, and for the port of a GPU, which is also joined to NICs.
  [[nodiscard]] bool is_inside_node(std::size_t wire) const {
    return wire < first_port_ + 2 * gpus_ && !is_of_network(wire);
  }

  /// A wire on the route of a transfer, and the end of the transfer whose node holds the wire.
  struct Crossed {
    std::size_t wire = 0;
    Rank end = 0;
  };
  /// Sets `crossed` to all wires that a transfer crosses. Requires different ranks.
  void way(Rank from, Rank to, std::vector<Crossed>& crossed) const;
  [[nodiscard]] std::size_t port(Rank rank, bool inwards) const {
    return first_port_ + 2 * static_cast<std::size_t>(rank % static_cast<Rank>(gpus_)) + (inwards ? 1 : 0);
  }
  [[nodiscard]] std::size_t nics(Rank rank, bool inwards) const {
    return first_port_ + 2 * gpus_ + 2 * static_cast<std::size_t>(node_of(rank)) + (inwards ? 1 : 0);
  }
  /// Returns the counted node of a rank: 0 when one node represents all nodes.
  [[nodiscard]] int node_of(Rank rank) const { return nodes_ == 1 ? 0 : rank / gpus_per_node_; }

  [[nodiscard]] double rate(std::size_t wire) const { return rate_or_capacity(wire, false); }
  [[nodiscard]] double capacity(std::size_t wire) const { return rate_or_capacity(wire, true); }
  /// Returns a name such as "the link between GPU 0 and a switch".
  [[nodiscard]] std::string name(std::size_t wire) const;

 private:
  [[nodiscard]] double rate_or_capacity(std::size_t wire, bool is_capacity) const;
  [[nodiscard]] std::optional<std::size_t> edge_of(std::size_t wire) const;
  [[nodiscard]] bool touches_network(const Edge& edge) const;

  std::shared_ptr<const Segments> segments_;
  const Topology& topology_;
  int gpus_per_node_ = 1;
  Rank counted_ranks_ = 1;
  std::size_t nodes_ = 1;  // counted nodes
  std::size_t gpus_ = 1;   // counted GPUs
  int times_on_fabric_ = 1;
  std::size_t first_port_ = 0;  // number of the first wire that is a port
};

/// A set of related transfers inside kernels. They bring one block of every rank to every other rank, or the terms that
/// every rank adds to one block of every other rank.
struct KernelSet {
  std::vector<std::size_t> ops;
  bool gathers = true;  ///< otherwise blocks are summed on their way
};
std::vector<KernelSet> kernel_sets_of(const Program& program);

/// Returns the number of blocks of the set that cross each wire; each block counts once. Wires of the network stay 0,
/// because a kernel may bring a block into a node through any of its NICs, and thus by any way through the fabric; the
/// NICs of a node together (CountedWires::nics) count it.
std::vector<double> crossings_of(const Program& program, const CountedWires& wires, const KernelSet& set);

}  // namespace commfuse
