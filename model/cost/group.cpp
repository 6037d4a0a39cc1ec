// SPDX-License-Identifier: Apache-2.0
#include "model/cost/group.h"

#include <algorithm>

#include "model/check.h"
#include "model/cost/op_time.h"

namespace commfuse {

namespace {

Duration stretched(Duration time, double factor) {
  return factor == 1.0 ? time : op_time(factor * to_seconds(time), "a collective");
}

/// Of the first such group of a node.
Group inside_a_node(const Machine& machine, int stride, int ranks) {
  Group group{.ranks = ranks};
  if (stride == 1 || ranks == 1) {
    group.wires = &collective_over(machine, 0, ranks);
    return group;
  }
  const double part = machine.strided_rates == nullptr ? 1.0 : machine.strided_rates->of_whole(stride, ranks);
  if (part != 1.0) {
    group.part = std::make_shared<const CollectiveParameters>(with_rates(machine.link.collective, part));
  }
  group.wires = part == 1.0 ? &machine.link.collective : group.part.get();
  return group;
}

}  // namespace

Duration Group::all_gather(Bytes total) const {
  return stretched(all_gather_time(*wires, ranks, total, nodes), stretch);
}
Duration Group::reduce_scatter(Bytes total) const {
  return stretched(reduce_scatter_time(*wires, ranks, total, nodes), stretch);
}
Duration Group::all_reduce(Bytes total) const {
  return stretched(all_reduce_time(*wires, ranks, total, nodes), stretch);
}
Duration Group::all_to_all(Bytes total) const {
  return stretched(nodes == 1 ? all_to_all_time(*wires, ranks, total) : all_to_all_time(*wires, ranks, total, spread),
                   stretch);
}

Group group_of(const Machine& machine, std::int64_t stride, std::int64_t ranks) {
  check(stride >= 1 && ranks >= 1 && stride * ranks <= total_gpus(machine), "the group fits the machine");
  if (stride * ranks <= machine.gpus_per_node) {
    return inside_a_node(machine, static_cast<int>(stride), static_cast<int>(ranks));
  }
  const auto of_a_node = static_cast<int>(std::clamp<std::int64_t>(machine.gpus_per_node / stride, 1, ranks));
  Group group =
      inside_a_node(machine, static_cast<int>(std::min<std::int64_t>(stride, machine.gpus_per_node)), of_a_node);
  group.ranks = static_cast<int>(ranks);
  group.nodes = (group.ranks + of_a_node - 1) / of_a_node;
  group.spread = {.gpus_of_a_node = of_a_node,
                  .inside = of_a_node == 1 ? nullptr : group.wires,
                  .rate_out = rate_across(machine, of_a_node)};
  group.wires = &collective_across(machine, of_a_node);
  return group;
}

Group group_on_axis(const Mesh& mesh, int axis, const Machine& machine) {
  return group_of(machine, mesh.stride(axis), mesh.axes[static_cast<std::size_t>(axis)].extent);
}

}  // namespace commfuse
