// SPDX-License-Identifier: Apache-2.0
// Simulates a point once more and examines it from all sides, for the report.
#pragma once

#include <span>

#include "reports/study.h"
#include "sim/point/request.h"

namespace commfuse::sim {

/// Studies the point of these rows. The runs are those of traced(); a point with jitter also has distributions, and one
/// with uncertainty the interval of its saving. Only predictions that repeat the row's picosecond are kept. Beside
/// implementations only the fastest of the ideal schedules is shown, and no more runs than a figure has room for.
reports::PointStudy study_of(const Point& point, std::span<const ResultRow> rows, Implementations implementations = {});

}  // namespace commfuse::sim
