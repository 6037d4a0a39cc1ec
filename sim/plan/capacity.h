// SPDX-License-Identifier: Apache-2.0
// A plan file answered: docs/plan.md says what is worked out, docs/decisions/0031 why so.
#pragma once

#include "model/config/plan_file.h"
#include "model/record/capacity_plan.h"

namespace commfuse {

/// That nothing keeps the limits is a result: the kinds say why. Throws ConfigError where model, machine and settings
/// clash.
CapacityPlan plan_capacity(const PlanFile& file);

}  // namespace commfuse
