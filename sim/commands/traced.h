// SPDX-License-Identifier: Apache-2.0
// Simulates results again with their timelines, for figures and traces.
#pragma once

#include <span>
#include <vector>

#include "reports/traced_run.h"
#include "sim/point/request.h"

namespace commfuse::sim {

/// Tools that simulate rows again. `predictor` must take its schedules from `structures`.
struct TracingTools {
  StructureCache& structures;
  Predictor& predictor;
};

/// Sources of rows other than generated schedules.
struct RowSources {
  std::span<const HandWritten> files{};
  Implementations implementations{};  ///< Rows of other implementations are skipped.
};

/// Returns one run for each row with a result. `rows` must be the rows of `point`.
std::vector<reports::TracedRun> traced(const Point& point, std::span<const ResultRow> rows, const RowSources& sources,
                                       TracingTools tools);
/// Simulates with a new cache and predictor.
std::vector<reports::TracedRun> traced(const Point& point, std::span<const ResultRow> rows,
                                       const RowSources& sources = {});

}  // namespace commfuse::sim
