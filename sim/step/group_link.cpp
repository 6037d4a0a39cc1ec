// SPDX-License-Identifier: Apache-2.0
#include "sim/step/group_link.h"

#include <algorithm>
#include <cmath>

#include "model/check.h"
#include "model/cost/communication.h"
#include "model/random/quantile_table.h"
#include "sim/step/stream.h"

namespace commfuse {

namespace {

Duration stretched(Duration time, double factor) {
  return factor == 1.0 ? time : stream_time(factor * to_seconds(time));
}

}  // namespace

double slowest_of(std::int64_t gpus, double sigma) {
  const auto n = static_cast<double>(gpus);
  return gpus <= 1 || sigma <= 0.0 ? 1.0 : lognormal(sigma)(0.625 / (n + 0.25), true);
}

double slowest_of(std::int64_t gpus, double sigma, double probability) {
  check(gpus >= 1 && probability > 0.0 && probability < 1.0, "a percentile lies between none and all");
  const double above = -std::expm1(std::log(probability) / static_cast<double>(gpus));
  if (sigma <= 0.0) {
    return 1.0;
  }
  return above <= 0.5 ? lognormal(sigma)(above, true) : lognormal(sigma)(1.0 - above, false);
}

Duration Group::all_gather(Bytes total) const {
  return stretched(all_gather_time(parameters, ranks, total, nodes), stretch);
}
Duration Group::reduce_scatter(Bytes total) const {
  return stretched(reduce_scatter_time(parameters, ranks, total, nodes), stretch);
}
Duration Group::all_reduce(Bytes total) const {
  return stretched(all_reduce_time(parameters, ranks, total, nodes), stretch);
}
Duration Group::all_to_all(Bytes total) const { return stretched(all_to_all_time(parameters, ranks, total), stretch); }

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
