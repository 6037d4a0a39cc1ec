// SPDX-License-Identifier: Apache-2.0
// Simulates a point again and explains it in detail, for the report.
#pragma once

#include <span>

#include "reports/study.h"
#include "sim/point/request.h"

namespace commfuse::sim {

/// Studies the point of these rows. The study's runs come from traced(), limited to the number that fit in a figure. A
/// point with jitter also has distributions, and a point with uncertainty has the interval of its saving. Keeps only
/// predictions that reproduce the row's time to the picosecond. If there are implementations, only the fastest ideal
/// schedule is shown.
reports::PointStudy study_of(const Point& point, std::span<const ResultRow> rows, Implementations implementations = {});

}  // namespace commfuse::sim
