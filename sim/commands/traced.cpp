// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/traced.h"

#include <algorithm>

#include "model/config/choices.h"
#include "model/cost/price.h"
#include "sim/engine/engine.h"
#include "sim/structure.h"

namespace commfuse::sim {

namespace {

/// The schedule that a row is about.
StrategyOptions options_of(const ResultRow& row) {
  StrategyOptions options;
  options.dtype = *dtype_named(row.dtype);
  options.slices = static_cast<std::int32_t>(row.slices.value_or(options.slices));
  if (row.form) {
    options.form = *form_named(*row.form);
  }
  for (const auto& [word, lane] : add_lane_choices) {
    options.add_lane = row.add_lane == word ? lane : options.add_lane;
  }
  return options;
}

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
        structures.get({point.scope, point.model.gated_mlp, point.ranks, find_strategy(row.strategy), options_of(row)});
    const Sizes sizes = bind_sizes(structure.program(), quantities_of(point.model, point.load()));
    runs.push_back(play(point, row, structure, sizes, engine));
  }
  return runs;
}

}  // namespace commfuse::sim
