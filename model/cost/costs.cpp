// SPDX-License-Identifier: Apache-2.0
#include "model/cost/costs.h"

namespace commfuse {

Costs with_free_communication(const Program& program, Costs costs) {
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    if (program.ops[op].purpose == Purpose::communication) {
      costs.duration[op] = Duration::zero();
    }
  }
  return costs;
}

Costs with_free_compute(const Program& program, Costs costs) {
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    if (program.ops[op].purpose != Purpose::communication) {
      costs.duration[op] = Duration::zero();
    }
  }
  return costs;
}

Duration essential_time(const Program& program, const Costs& costs, Rank rank) {
  const Coordinates here = program.mesh.coordinates(rank);
  const std::vector<Duration>& priced = costs.undisturbed.empty() ? costs.duration : costs.undisturbed;
  Duration total{};
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    if (program.ops[op].purpose == Purpose::essential && program.ops[op].where.holds(here)) {
      total += priced[op];
    }
  }
  return total;
}

}  // namespace commfuse
