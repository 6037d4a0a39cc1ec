// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/traced.h"

#include "model/cost/price.h"
#include "sim/engine/engine.h"
#include "sim/structure.h"

namespace commfuse::sim {

std::vector<reports::TracedRun> traced(const Point& point, std::span<const ResultRow> rows) {
  StructureCache structures;
  Engine engine;
  std::vector<reports::TracedRun> runs;
  for (const ResultRow& row : rows) {
    if (!row.feasible()) {
      continue;
    }
    const Structure& structure =
        structures.get({point.scope, point.model.gated_mlp, point.ranks, find_strategy(row.strategy), row.options});
    const Sizes sizes = bind_sizes(structure.program(), quantities_of(point.model, point.load()));
    const Costs costs = price(structure.program(), structure.meetings, sizes, point.machine, point.price);
    Recorder recorder(Recorder::Keep::timeline);
    engine.run(structure.plan, costs, recorder);
    runs.push_back(
        {.row = row, .program = structure.plan.lowered.program, .timeline = recorder.timeline(), .sizes = sizes});
  }
  return runs;
}

}  // namespace commfuse::sim
