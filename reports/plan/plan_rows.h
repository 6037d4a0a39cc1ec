// SPDX-License-Identifier: Apache-2.0
// A capacity plan as text for programs: JSON and CSV.
#pragma once

#include <string>

#include "model/record/capacity_plan.h"

namespace commfuse::reports {

/// Returns {"schema": "commfuse.capacity/1", ...} with every digit.
std::string plan_json(const CapacityPlan& plan);

/// Returns RFC 4180 text: the names of the columns, and one line per run, grouped by kind of GPU, with every digit.
std::string plan_csv(const CapacityPlan& plan);

}  // namespace commfuse::reports
