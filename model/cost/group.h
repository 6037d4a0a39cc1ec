// SPDX-License-Identifier: Apache-2.0
// A collective's group: GPUs that stand some apart, and what they see of the wires.
#pragma once

#include <cstdint>
#include <memory>

#include "model/cost/communication.h"
#include "model/hardware/machine.h"
#include "model/schedule/mesh.h"
#include "model/units.h"

namespace commfuse {

/// Of ranks that are one collective's while all groups alike are busy at once. Points into the machine it is of, which
/// outlives it.
struct Group {
  const CollectiveParameters* wires = nullptr;  ///< Inside a node, or across nodes.
  int ranks = 1;
  int nodes = 1;
  Spread spread;         ///< Where there are several nodes.
  double stretch = 1.0;  ///< Times its price: the largest of its members' times.
  /// What `wires` and `spread.inside` point to where a group has a part of the machine's.
  std::shared_ptr<const CollectiveParameters> part = nullptr;

  [[nodiscard]] Duration all_gather(Bytes total) const;
  [[nodiscard]] Duration reduce_scatter(Bytes total) const;
  [[nodiscard]] Duration all_reduce(Bytes total) const;
  [[nodiscard]] Duration all_to_all(Bytes total) const;
};

/// GPUs 0, stride, 2 x stride and so on. Inside a node the node's collective, or a group's part of it; across nodes the
/// network's over a group with as many members on a node (collective_across). Requires ranks x stride GPUs.
Group group_of(const Machine& machine, std::int64_t stride, std::int64_t ranks);

/// Of a collective on an axis: rank r runs on GPU r, and the groups at all other coordinates are as busy. Requires a
/// GPU for each rank.
Group group_on_axis(const Mesh& mesh, int axis, const Machine& machine);

}  // namespace commfuse
