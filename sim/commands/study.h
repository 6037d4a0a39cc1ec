// SPDX-License-Identifier: Apache-2.0
// A point played once more and looked at from all sides, for the report.
#pragma once

#include <span>

#include "reports/study.h"
#include "sim/point/request.h"

namespace commfuse::sim {

/// Of rows of this point. Its runs are those of traced(); distributions where the point has a jitter; the interval of
/// the saving where it was made with uncertainty on. What is predicted anew is the same picosecond as in the rows, or
/// it is left out.
/// Beside implementations only the fastest of the ideal schedules is shown, and no more runs than a figure has room
/// for.
reports::PointStudy study_of(const Point& point, std::span<const ResultRow> rows, Implementations implementations = {});

}  // namespace commfuse::sim
