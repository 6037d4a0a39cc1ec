// SPDX-License-Identifier: Apache-2.0
// Answers a plan file. docs/plan.md describes the answer, docs/decisions/0031 gives the reasons.
#pragma once

#include "model/config/plan_file.h"
#include "model/record/capacity_plan.h"
#include "sim/step/measured_step.h"

namespace commfuse {

/// Returns the plan for a file. It has no answer if no run meets all limits; then each CapacityKind states the limit
/// that binds. A measured step corrects the times on its machine and narrows their intervals. Throws ConfigError if
/// model, machine and settings conflict, and if the step was measured on a machine that the plan does not offer.
CapacityPlan plan_capacity(const PlanFile& file, const StepEvidence* evidence = nullptr);

}  // namespace commfuse
