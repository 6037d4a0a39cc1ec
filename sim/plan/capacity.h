// SPDX-License-Identifier: Apache-2.0
// Answers a plan file: docs/plan.md describes the answer, docs/decisions/0031 the reasons.
#pragma once

#include "model/config/plan_file.h"
#include "model/record/capacity_plan.h"
#include "sim/step/measured_step.h"

namespace commfuse {

/// A result without an answer is valid: then no option meets the limits, and each kind gives its reason. A measured
/// step corrects the times on its machine and narrows their intervals. Throws ConfigError where model, machine and
/// settings clash, and for a step that was measured on none of the machines.
CapacityPlan plan_capacity(const PlanFile& file, const StepEvidence* evidence = nullptr);

}  // namespace commfuse
