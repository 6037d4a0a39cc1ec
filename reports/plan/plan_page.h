// SPDX-License-Identifier: Apache-2.0
// A capacity plan as one self-contained page: no script, nothing from the network.
#pragma once

#include <string>

#include "model/record/capacity_plan.h"

namespace commfuse::reports {

struct PlanPageInput {
  const CapacityPlan& plan;
  std::string command;  ///< That makes it again.
  std::string version;  ///< Of the program.
};

std::string plan_page(const PlanPageInput& input);

}  // namespace commfuse::reports
