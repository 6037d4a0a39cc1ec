// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/traced.h"

#include <algorithm>

#include "model/cost/price.h"
#include "sim/engine/engine.h"
#include "sim/structure.h"

namespace commfuse::sim {

namespace {

reports::TracedRun play(const Point& point, const ResultRow& row, const Structure& structure, const Sizes& sizes,
                        Engine& engine) {
  const Costs costs = price(structure.program(), structure.meetings, sizes, point.machine, point.price);
  Recorder recorder(Recorder::Keep::timeline);
  engine.run(structure.plan, costs, recorder);
  return {.row = row, .program = structure.plan.lowered.program, .timeline = recorder.timeline(), .sizes = sizes};
}

}  // namespace

std::vector<reports::TracedRun> traced(const Point& point, std::span<const ResultRow> rows,
                                       std::span<const HandWritten> files) {
  StructureCache structures;
  Engine engine;
  std::vector<reports::TracedRun> runs;
  for (const ResultRow& row : rows) {
    if (!row.feasible()) {
      continue;
    }
    const auto file = std::find_if(files.begin(), files.end(),
                                   [&](const HandWritten& one) { return one.structure.digest == row.schedule_sha256; });
    if (file != files.end()) {
      runs.push_back(play(point, row, file->structure, sizes_at(*file, point), engine));
      continue;
    }
    const Structure& structure =
        structures.get({point.scope, point.model.gated_mlp, point.ranks, find_strategy(row.strategy), row.options});
    const Sizes sizes = bind_sizes(structure.program(), quantities_of(point.model, point.load()));
    runs.push_back(play(point, row, structure, sizes, engine));
  }
  return runs;
}

}  // namespace commfuse::sim
