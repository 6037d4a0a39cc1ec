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

/// What rows may be of beside generated schedules.
struct Beside {
  std::span<const HandWritten> files{};
  Implementations implementations{};  ///< Rows of others are left out.
};

/// One run a row that has a result. Requires the rows of this point.
std::vector<reports::TracedRun> traced(const Point& point, std::span<const ResultRow> rows, const Beside& beside,
                                       Player player);
/// The same with a player of its own.
std::vector<reports::TracedRun> traced(const Point& point, std::span<const ResultRow> rows, const Beside& beside = {});

}  // namespace commfuse::sim
