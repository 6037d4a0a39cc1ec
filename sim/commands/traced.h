// SPDX-License-Identifier: Apache-2.0
// Results played once more with everything that happens kept: for figures and traces.
#pragma once

#include <span>
#include <vector>

#include "reports/traced_run.h"
#include "sim/point/request.h"

namespace commfuse::sim {

/// What plays rows once more. `predictor` has its schedules from `structures`.
struct Player {
  StructureCache& structures;
  Predictor& predictor;
};

/// One run a row that has a result. Requires the rows of this point, and the files that some of them are about.
std::vector<reports::TracedRun> traced(const Point& point, std::span<const ResultRow> rows,
                                       std::span<const HandWritten> files, Player player);
/// The same with a player of its own.
std::vector<reports::TracedRun> traced(const Point& point, std::span<const ResultRow> rows,
                                       std::span<const HandWritten> files = {});

}  // namespace commfuse::sim
