// SPDX-License-Identifier: Apache-2.0
// A capacity plan for programs.
#pragma once

#include <string>

#include "model/record/capacity_plan.h"

namespace commfuse::reports {

/// {"schema": "commfuse.capacity/1", ...}: all of it, with every digit.
std::string plan_json(const CapacityPlan& plan);

/// RFC 4180: a line a run of every kind, with every digit.
std::string plan_csv(const CapacityPlan& plan);

}  // namespace commfuse::reports
