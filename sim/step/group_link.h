// SPDX-License-Identifier: Apache-2.0
// What a group of ranks that stand some GPUs apart sees of the wires when all groups alike are busy at once.
#pragma once

#include <cstdint>

#include "model/hardware/machine.h"
#include "model/units.h"

namespace commfuse {

struct Group {
  CollectiveParameters parameters;
  int ranks = 1;
  int nodes = 1;

  [[nodiscard]] Duration all_gather(Bytes total) const;
  [[nodiscard]] Duration reduce_scatter(Bytes total) const;
  [[nodiscard]] Duration all_reduce(Bytes total) const;
  [[nodiscard]] Duration all_to_all(Bytes total) const;
};

/// GPUs 0, stride, 2 x stride and so on. Inside a node the node's collective; across nodes the network's over a group
/// with as many members on a node (collective_across). Requires ranks x stride GPUs.
Group group_of(const Machine& machine, std::int64_t stride, std::int64_t ranks);

/// One exchange with the GPU so many further on.
Duration send_time(const Machine& machine, std::int64_t stride, Bytes bytes);

}  // namespace commfuse
