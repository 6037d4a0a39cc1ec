// SPDX-License-Identifier: Apache-2.0
#include "sim/step/group_link.h"

#include <algorithm>

#include "model/check.h"
#include "model/cost/communication.h"

namespace commfuse {

Duration Group::all_gather(Bytes total) const { return all_gather_time(parameters, ranks, total, nodes); }
Duration Group::reduce_scatter(Bytes total) const { return reduce_scatter_time(parameters, ranks, total, nodes); }
Duration Group::all_reduce(Bytes total) const { return all_reduce_time(parameters, ranks, total, nodes); }
Duration Group::all_to_all(Bytes total) const { return all_to_all_time(parameters, ranks, total); }

Group group_of(const Machine& machine, std::int64_t stride, std::int64_t ranks) {
  check(stride * ranks <= total_gpus(machine), "the group fits the machine");
  Group group;
  group.ranks = static_cast<int>(ranks);
  if (stride * ranks <= machine.gpus_per_node) {
    group.parameters = collective_over(machine, 0, group.ranks);
    return group;
  }
  const std::int64_t of_a_node = std::clamp<std::int64_t>(machine.gpus_per_node / stride, 1, ranks);
  group.nodes = static_cast<int>((ranks + of_a_node - 1) / of_a_node);
  group.parameters = collective_across(machine, static_cast<int>(of_a_node));
  return group;
}

Duration send_time(const Machine& machine, std::int64_t stride, Bytes bytes) {
  const bool is_near = stride < machine.gpus_per_node || !machine.network;
  return p2p_time(is_near ? machine.link.peer : machine.network->peer, bytes);
}

}  // namespace commfuse
