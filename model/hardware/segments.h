// SPDX-License-Identifier: Apache-2.0
// The directed wires that transfers cross, numbered so that equal nodes count alike.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/hardware/topology.h"

namespace commfuse {

struct Machine;

/// The segments of equal nodes on one fabric, and the way from each GPU to each. Shape only: rates are the machine's.
///
/// A segment is a link of the topology in one direction, or a port of a GPU: out and in, inside its node and across.
/// The fabric's segments have the numbers [0, of_fabric). Those of the nodes follow, node by node: every node has
/// equally many, in the same order.
struct Segments {
  enum class Side : std::uint8_t { fabric, sender, receiver };
  /// One segment on a way: of the fabric, or of the node of either end. `place` counts from the first of those.
  struct Crossing {
    std::int32_t place = 0;
    Side side = Side::fabric;
  };

  int gpus_per_node = 1;
  std::int32_t of_fabric = 0;
  std::int32_t of_a_node = 0;
  std::int32_t links_of_a_node = 0;  ///< The first of a node's segments are links, the others ports.
  std::vector<Crossing> crossings;   ///< Pool.
  std::vector<std::uint32_t> ways;   ///< Where those of a way begin in the pool; one more than there are ways.
  std::vector<std::int32_t>
      edges;  ///< Edge of the topology, of the fabric's segments and then of the first node's links.

  /// What a transfer crosses, ports first and last. Requires different GPUs.
  [[nodiscard]] std::span<const Crossing> way(int from, int to) const {
    const int a = from % gpus_per_node;
    const int b = to % gpus_per_node;
    const int across = from / gpus_per_node == to / gpus_per_node ? 0 : 1;
    const auto which = static_cast<std::size_t>((across * gpus_per_node + a) * gpus_per_node + b);
    return std::span(crossings).subspan(ways[which], ways[which + 1] - ways[which]);
  }
  /// Its place among the fabric's segments and one node's.
  [[nodiscard]] std::size_t kind(const Crossing& crossing) const {
    return static_cast<std::size_t>(crossing.place + (crossing.side == Side::fabric ? 0 : of_fabric));
  }
  /// Its number, on the way of a transfer between these nodes.
  [[nodiscard]] std::size_t number(const Crossing& crossing, int from_node, int to_node) const {
    const int node = crossing.side == Side::sender ? from_node : to_node;
    return kind(crossing) + (crossing.side == Side::fabric ? 0 : static_cast<std::size_t>(node * of_a_node));
  }
};

/// Of a topology of equal nodes; ways across nodes are those from the first node to the second, which stand for all.
/// One without edges has ports alone. Requires GPUs that reach each other.
Segments segments_of(const Topology& topology, int gpus_per_node);

/// The machine's own; of one that has none, of its topology, and without that of ports alone.
std::shared_ptr<const Segments> segments_of(const Machine& machine);

/// Bytes a second that each kind of segment carries (Segments::kind), all transfers together: of a link the data
/// sheet's rate, as much of it as a peer's measured rate is of the slowest link on its way; of a port what all peers
/// get. Where exchanges inside and across get unequal parts, the larger.
std::vector<double> segment_rates(const Segments& segments, const Machine& machine);

}  // namespace commfuse
