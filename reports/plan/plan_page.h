// SPDX-License-Identifier: Apache-2.0
// A capacity plan as one self-contained page without scripts, which fetches nothing.
#pragma once

#include <string>

#include "model/record/capacity_plan.h"

namespace commfuse::reports {

struct PlanPageInput {
  const CapacityPlan& plan;
  std::string command;  ///< Command that recreates the page.
  std::string version;  ///< Version of the program.
};

std::string plan_page(const PlanPageInput& input);

}  // namespace commfuse::reports
