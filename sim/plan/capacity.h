// SPDX-License-Identifier: Apache-2.0
// Answers a plan file: docs/plan.md describes the answer, docs/decisions/0031 the reasons.
#pragma once

#include "model/config/plan_file.h"
#include "model/record/capacity_plan.h"

namespace commfuse {

/// A result without an answer is valid: then no option meets the limits, and each kind gives its reason. Throws
/// ConfigError where model, machine and settings clash.
CapacityPlan plan_capacity(const PlanFile& file);

}  // namespace commfuse
