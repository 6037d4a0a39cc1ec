// SPDX-License-Identifier: Apache-2.0
// A collective's group: GPUs that stand some apart, and what they see of the wires.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/cost/communication.h"
#include "model/hardware/machine.h"
#include "model/program/mesh.h"
#include "model/units.h"

namespace commfuse {

/// Of ranks that are one collective's while all groups alike are busy at once. Points into the machine it is of, which
/// outlives it.
struct Group {
  const CollectiveParameters* wires = nullptr;  ///< Inside a node, or across nodes.
  int ranks = 1;
  int nodes = 1;
  std::vector<Spread> spreads;  ///< Where there are several nodes: one for each number of its GPUs on a node.
  double stretch = 1.0;         ///< Times its price: the largest of its members' times.
  /// Seconds that a byte of the whole takes at the least through a member's port or the NICs of one of its nodes, by
  /// what they are built for: of all but an all-to-all, where every byte crosses once, and of an all-to-all.
  double least_once = 0.0;
  double least_to_all = 0.0;
  /// What `wires` and `inside` point to where a group has a part of the machine's.
  std::vector<std::shared_ptr<const CollectiveParameters>> parts;

  [[nodiscard]] Duration all_gather(Bytes total) const;
  [[nodiscard]] Duration reduce_scatter(Bytes total) const;
  [[nodiscard]] Duration all_reduce(Bytes total) const;
  [[nodiscard]] Duration all_to_all(Bytes total) const;
};

/// The one that all wait for, of groups of GPUs `stride` apart that take so many GPUs side by side from the first on:
/// stride x ranks GPUs are `stride` groups, the next as many the next. Inside a node the node's collective, or a
/// group's part of it; across nodes the network's over a group with as many members on a node as this one has where it
/// has the fewest (collective_across). So a group that lies across two nodes counts, and a last node that is not full.
/// Requires a multiple of stride x ranks GPUs, no more than the machine's.
Group group_of(const Machine& machine, std::int64_t stride, std::int64_t ranks, std::int64_t gpus);

/// The same of the first block of groups alone.
Group group_of(const Machine& machine, std::int64_t stride, std::int64_t ranks);

/// Of a collective on an axis: rank r runs on GPU r, and the groups at all other coordinates are as busy. Requires a
/// GPU for each rank.
Group group_on_axis(const Mesh& mesh, int axis, const Machine& machine);

}  // namespace commfuse
