// SPDX-License-Identifier: Apache-2.0
#include "model/cost/costs.h"

#include <utility>

namespace commfuse {

namespace {

/// Takes the time of all ops of which `free` holds.
template <class Free>
Costs without(const Program& program, Costs costs, const Free& free) {
  const std::size_t ops = program.ops.size();
  for (std::size_t op = 0; op < ops; ++op) {
    if (free(program.ops[op])) {
      costs.duration[op] = Duration::zero();
      for (std::size_t place = op; place < costs.by_rank.size(); place += ops) {
        costs.by_rank[place] = Duration::zero();
      }
    }
  }
  return costs;
}

}  // namespace

Costs with_free_communication(const Program& program, Costs costs) {
  return without(program, std::move(costs), [](const Op& op) { return op.purpose == Purpose::communication; });
}

Costs with_free_compute(const Program& program, Costs costs) {
  return without(program, std::move(costs), [](const Op& op) { return op.purpose != Purpose::communication; });
}

Duration essential_time(const Program& program, const Costs& costs, Rank rank) {
  const Coordinates here = program.mesh.coordinates(rank);
  Duration total{};
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    if (program.ops[op].purpose == Purpose::essential && program.ops[op].where.holds(here)) {
      total += costs.undisturbed_of(rank, op);
    }
  }
  return total;
}

}  // namespace commfuse
