// SPDX-License-Identifier: Apache-2.0
// Simulates results once more and keeps everything that happens, for figures and traces.
#pragma once

#include <span>
#include <vector>

#include "reports/traced_run.h"
#include "sim/point/request.h"

namespace commfuse::sim {

/// Simulates rows once more. `predictor` takes its schedules from `structures`.
struct Player {
  StructureCache& structures;
  Predictor& predictor;
};

/// The kinds of rows beside generated schedules.
struct Beside {
  std::span<const HandWritten> files{};
  Implementations implementations{};  ///< Rows of other implementations are left out.
};

/// Returns one run for each row with a result. Requires the rows of this point.
std::vector<reports::TracedRun> traced(const Point& point, std::span<const ResultRow> rows, const Beside& beside,
                                       Player player);
/// Does the same with a player of its own.
std::vector<reports::TracedRun> traced(const Point& point, std::span<const ResultRow> rows, const Beside& beside = {});

}  // namespace commfuse::sim
