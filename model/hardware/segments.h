// SPDX-License-Identifier: Apache-2.0
// Directed wires that transfers cross, with the same numbers in every node.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/hardware/topology.h"

namespace commfuse {

struct Machine;

/// Segments of equal nodes on one fabric, and the way (the segments crossed) from each GPU to each of the others.
/// Segments describe only the shape; rates belong to the machine.
///
/// A segment is a link of the topology in one direction, or a port of a GPU. A GPU has four ports: out and in, for
/// transfers inside its node and across nodes. The fabric's segments have the numbers [0, of_fabric). The segments of
/// the nodes follow, node by node: every node has the same number of them, in the same order.
struct Segments {
  enum class Side : std::uint8_t { fabric, sender, receiver };
  /// One segment on a way: of the fabric, or of the sender's or receiver's node. `place` counts from the first segment
  /// of that part.
  struct Crossing {
    std::int32_t place = 0;
    Side side = Side::fabric;
  };

  int gpus_per_node = 1;
  std::int32_t of_fabric = 0;        ///< Number of the fabric's segments.
  std::int32_t of_a_node = 0;        ///< Number of a node's segments.
  std::int32_t links_of_a_node = 0;  ///< A node's segments begin with this many links; the others are ports.
  std::vector<Crossing> crossings;   ///< Pool: the crossings of all ways in sequence.
  std::vector<std::uint32_t> ways;   ///< Start of each way in the pool, and the end of the last.
  /// Edge of the topology for each of the fabric's segments, then for each of the first node's links.
  std::vector<std::int32_t> edges;

  /// Returns the segments that a transfer crosses, ports first and last. Requires different GPUs.
  [[nodiscard]] std::span<const Crossing> way(int from, int to) const {
    const int a = from % gpus_per_node;
    const int b = to % gpus_per_node;
    const int across = from / gpus_per_node == to / gpus_per_node ? 0 : 1;
    const auto index = static_cast<std::size_t>((across * gpus_per_node + a) * gpus_per_node + b);
    return std::span(crossings).subspan(ways[index], ways[index + 1] - ways[index]);
  }
  /// Returns the index of the crossed segment among the fabric's segments and those of one node.
  [[nodiscard]] std::size_t kind(const Crossing& crossing) const {
    return static_cast<std::size_t>(crossing.place + (crossing.side == Side::fabric ? 0 : of_fabric));
  }
  /// Returns the number of the crossed segment for a transfer between these nodes.
  [[nodiscard]] std::size_t number(const Crossing& crossing, int from_node, int to_node) const {
    const int node = crossing.side == Side::sender ? from_node : to_node;
    return kind(crossing) + (crossing.side == Side::fabric ? 0 : static_cast<std::size_t>(node * of_a_node));
  }
};

/// Returns the segments of a topology of equal nodes. Ways across nodes are computed from the first node to the second;
/// all other pairs of nodes have the same ways. A topology without edges has only ports. Requires the GPUs to reach
/// each other if the topology has edges.
Segments segments_of(const Topology& topology, int gpus_per_node);

/// Returns the machine's own segments; if it has none, the segments of its topology; without a topology, only ports.
std::shared_ptr<const Segments> segments_of(const Machine& machine);

/// Returns the bytes per second that each kind of segment carries (Segments::kind), all transfers together. A link
/// carries its nominal rate, scaled by the ratio of the peer's measured rate to the slowest link between the two peers;
/// a port carries the aggregate rate of all peers. If several pairs of GPUs give different values, the largest counts.
std::vector<double> segment_rates(const Segments& segments, const Machine& machine);

}  // namespace commfuse
