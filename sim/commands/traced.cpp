// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/traced.h"

#include <algorithm>

#include "sim/point/structure.h"

namespace commfuse::sim {

namespace {

reports::TracedRun traced_run(const Point& point, const ResultRow& row, const Structure& structure, const Sizes& sizes,
                              Predictor& predictor) {
  reports::TracedRun run{.row = row,
                         .program = structure.plan.lowered.program,
                         .timeline = predictor.timeline(point, structure, sizes),
                         .sizes = sizes};
  if (!point.needs_engine()) {  // If rates change at run time, prices do not determine how long an op takes.
    run.path =
        critical_path(structure.plan.lowered, static_costs(point, point.machine, structure, sizes), run.timeline);
  }
  return run;
}

}  // namespace

std::vector<reports::TracedRun> traced(const Point& point, std::span<const ResultRow> rows, const RowSources& sources,
                                       TracingTools tools) {
  std::vector<reports::TracedRun> runs;
  for (const ResultRow& row : rows) {
    const Implementation* implementation = implementation_of(row, sources.implementations);
    if (!row.feasible() || (implementation == nullptr && !row.implements.empty())) {
      continue;
    }
    const auto file = std::find_if(sources.files.begin(), sources.files.end(), [&](const HandWritten& hand_written) {
      return hand_written.structure.digest == row.schedule_sha256;
    });
    if (implementation == nullptr && file != sources.files.end()) {
      runs.push_back(traced_run(point, row, file->structure, sizes_at(*file, point), tools.predictor));
      continue;
    }
    const Strategy* strategy = implementation == nullptr ? find_strategy(row.strategy) : implementation->strategy;
    const Structure& structure =
        tools.structures.get({point.scope, point.model.gated_mlp, point.ranks, strategy, row.options});
    const Sizes sizes = bind_sizes(structure.program(), quantities_of(point.model, point.load(), point.ranks));
    runs.push_back(traced_run(implementation == nullptr ? point : priced_as(point, *implementation), row, structure,
                              sizes, tools.predictor));
  }
  return runs;
}

std::vector<reports::TracedRun> traced(const Point& point, std::span<const ResultRow> rows, const RowSources& sources) {
  StructureCache structures;
  Predictor predictor(structures);
  return traced(point, rows, sources, {structures, predictor});
}

}  // namespace commfuse::sim
