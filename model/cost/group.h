// SPDX-License-Identifier: Apache-2.0
// The GPUs of a collective, a fixed stride apart, and the wires that they use.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "model/cost/communication.h"
#include "model/hardware/machine.h"
#include "model/program/mesh.h"
#include "model/units.h"

namespace commfuse {

/// Ranks of one collective, while all groups of the same layout run the same collective. Points into the machine, which
/// must outlive the group.
struct Group {
  const CollectiveParameters* wires = nullptr;  ///< Parameters inside a node, or across nodes.
  int ranks = 1;
  int nodes = 1;
  std::vector<Spread> spreads;  ///< One entry per distinct number of its GPUs on a node; empty for one node.
  double stretch = 1.0;         ///< Factor on the price, for the wait for the slowest member.
  /// Least seconds per byte of the total at nominal rates, through a member's port or the NICs of one of its nodes:
  /// `least_once` for collectives in which every byte crosses once, `least_to_all` for an all-to-all.
  double least_once = 0.0;
  double least_to_all = 0.0;
  /// Owns the parameters to which `wires` and Spread::inside point if the group gets only a part of the machine's
  /// rates.
  std::vector<std::shared_ptr<const CollectiveParameters>> parts;

  [[nodiscard]] Duration all_gather(Bytes total) const;
  [[nodiscard]] Duration reduce_scatter(Bytes total) const;
  [[nodiscard]] Duration all_reduce(Bytes total) const;
  [[nodiscard]] Duration all_to_all(Bytes total) const;
};

/// Groups of equal size and stride over the first GPUs of a machine: stride x ranks GPUs make `stride` groups, and the
/// following GPUs repeat this pattern.
struct GroupLayout {
  std::int64_t stride = 1;
  std::int64_t ranks = 1;
  /// GPUs in all groups: a multiple of stride x ranks, no more than the machine's. Nullopt: the first stride x ranks.
  std::optional<std::int64_t> gpus = std::nullopt;
};

/// Returns the slowest group of the layout. Inside a node, the group uses the node's collective parameters or a part of
/// them. Across nodes, it uses the network's (collective_across), for as many members per node as the node with the
/// fewest members has. This covers groups that span two nodes, and a last node that is not full.
Group group_of(const Machine& machine, const GroupLayout& layout);

/// Returns the group of a collective on an axis: rank r runs on GPU r, and the groups at all other coordinates run the
/// collective at the same time. Requires a GPU for each rank.
Group group_on_axis(const Mesh& mesh, int axis, const Machine& machine);

}  // namespace commfuse
